package doctor

import (
	"slices"
	"strings"
)

func membership(h Host) verdict {
	switch state := h.Details.Docker.Swarm; {
	case h.Docker.Socket == "":
		return forSwarm(NotApplicable, "has no running Docker Engine", "")
	case state == "":
		return forSwarm(NotApplicable, "has a Docker Engine that could not be queried", "")
	case state == inactive:
		return forSwarm(OK, "is in no Swarm, and can form or join one", "")
	case state == "active" && h.Details.Docker.Manager:
		return forSwarm(OK, "is a manager of a Swarm", "")
	case state == "active":
		return forSwarm(OK, "is a worker node of a Swarm", "")
	case state == "locked":
		return forSwarm(Problem, "is in a Swarm that is locked", h.Sudo("docker swarm unlock"))
	case state == "pending":
		return forSwarm(Warning, "is entering its Swarm, or its managers don't answer: wait", "")
	case h.Details.Docker.SwarmError != "":
		return forSwarm(Problem, "is in a Swarm, in state "+state+": "+h.Details.Docker.SwarmError, "")
	default: // leaving would delete the Swarm's data if this is a manager, which doesn't show in such a state
		return forSwarm(Problem, "is in a Swarm, in state "+state, h.Sudo("docker info --format '{{.Swarm.Error}}'"))
	}
}

// inactive is the state of an Engine that is in no Swarm.
const inactive = "inactive"

// swarmPorts are those that hosts of a Swarm reach each other at.
var swarmPorts = []Port{{"tcp", 2377}, {"tcp", 7946}, {"udp", 7946}, {"udp", 4789}}

// dockerProcess is the name of an Engine's process.
const dockerProcess = "dockerd"

func ports(h Host) verdict {
	state := h.Details.Docker.Swarm
	inSwarm := state != "" && state != inactive
	var taken, unclear, fixes []string
	for _, port := range swarmPorts {
		isTaken := slices.Contains(h.Ports, port.Number)
		if port.Protocol == "udp" {
			isTaken = slices.Contains(h.Details.UDP, port.Number)
		}
		by := h.listener(port)
		if !isTaken || by.Process == dockerProcess || by.Process == "" && inSwarm {
			continue
		}
		if by.Process == "" && state == "" && h.Docker.Socket != "" {
			unclear = append(unclear, port.String())
			continue
		}
		text := port.String()
		if by.Process != "" {
			text += " (" + by.Process + ")"
		}
		taken = append(taken, text)
		if fix := h.free(port, by); !slices.Contains(fixes, fix) {
			fixes = append(fixes, fix)
		}
	}
	switch {
	case taken != nil:
		return forSwarm(Problem, "has ports in use that a Swarm needs: "+strings.Join(taken, ", "),
			strings.Join(fixes, " && "))
	case unclear != nil:
		return forSwarm(NotApplicable, "does not show without root what uses "+strings.Join(unclear, ", "), "")
	case inSwarm:
		return forSwarm(OK, "has the ports that its Swarm needs", "")
	}
	var all []string
	for _, port := range swarmPorts {
		all = append(all, port.String())
	}
	return forSwarm(OK, "has all ports free that a Swarm needs: "+strings.Join(all, ", "), "")
}

// listener returns who listens on a port; nobody where that is not known.
func (h Host) listener(port Port) Listener {
	i := slices.IndexFunc(h.Details.Listeners, func(l Listener) bool { return l.Port == port })
	if i < 0 {
		return Listener{}
	}
	return h.Details.Listeners[i]
}
