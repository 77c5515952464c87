package domain

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// ResidentState is what a controller or an agent does.
type ResidentState string

// The states of residents.
const (
	ResidentRunning ResidentState = "running"
	// ResidentStarting is one that was ordered, and has not failed.
	ResidentStarting ResidentState = "starting"
	// ResidentFailing is one that is tried again and again, or has no place.
	ResidentFailing ResidentState = "failing"
	// ResidentAbsent is one that is not even tried.
	ResidentAbsent ResidentState = "absent"
)

// Resident is what runs beside a cluster's members: its controller, or the agent of a host.
type Resident struct {
	State ResidentState
	// Host is where it runs, or was last tried; empty where that is not known.
	Host string
	// Error is why it does not run, in the words of what runs it, and Advice what to do about that.
	Error, Advice string
	// Attempts is how often in a row it has failed to run.
	Attempts int
	// Excused says that nobody expects it to run: its host is down or drained, or one that Trainyard has no address of.
	Excused bool
}

// HopelessAttempts is how often a resident may fail before nobody waits for it any more. A host may hear of the resident's network later
// than of the resident: that costs an attempt or two.
const HopelessAttempts = 4

// hopeless reports whether waiting for it is in vain.
func (r Resident) hopeless() bool {
	return r.State == ResidentFailing && r.Attempts >= HopelessAttempts
}

// awaited reports whether it is on its way.
func (r Resident) awaited() bool { return r.State == ResidentStarting || r.State == ResidentFailing }

// missing reports whether it does not run, though it should, and is not just about to.
func (r Resident) missing() bool {
	return r.State == ResidentFailing || r.State == ResidentAbsent && !r.Excused
}

// Why says why it does not run, and what to do; it is empty where it runs.
func (r Resident) Why() string {
	if r.State == ResidentRunning {
		return ""
	}
	why := r.Error
	if why == "" {
		why = "it is " + string(r.State)
	}
	if r.Advice == "" {
		return why
	}
	return strings.TrimSuffix(why, ".") + ". " + r.Advice
}

// Residents are those of one cluster.
type Residents struct {
	Controller Resident
	// Agents are those of the hosts by name; nil where the cluster has none.
	Agents map[string]Resident
}

// Hopeless says which residents fail again and again, why, and what to do; it is empty where none does.
func (r Residents) Hopeless() []string { return r.tell(Resident.hopeless) }

// Failing says which residents fail, if only once so far, or have no place.
func (r Residents) Failing() []string {
	return r.tell(func(r Resident) bool { return r.State == ResidentFailing })
}

// Awaited says which residents are on their way; it is empty where none is.
func (r Residents) Awaited() []string { return r.tell(Resident.awaited) }

// Missing says which residents don't run, though they should, why, and what to do; it is empty where all do, or are about to.
func (r Residents) Missing() []string { return r.tell(Resident.missing) }

// MissingController is what [Residents.Missing] says of the controller alone.
func (r Residents) MissingController() []string {
	return Residents{Controller: r.Controller}.Missing()
}

// MissingAgents is what [Residents.Missing] says of the agents of these hosts alone.
func (r Residents) MissingAgents(hosts ...string) []string {
	agents := maps.Clone(r.Agents)
	maps.DeleteFunc(agents, func(name string, _ Resident) bool { return !slices.Contains(hosts, name) })
	return Residents{Agents: agents}.Missing()
}

// tell says of those residents that are meant why they don't run. Agents with the same reason share a sentence.
func (r Residents) tell(meant func(Resident) bool) (told []string) {
	if c := r.Controller; meant(c) {
		at := ""
		if c.Host != "" {
			at = " on host " + c.Host
		}
		told = append(told, fmt.Sprintf("The controller isn't running%s: %s", at, c.Why()))
	}
	byReason := map[string][]string{}
	for name, agent := range r.Agents {
		if meant(agent) {
			byReason[agent.Why()] = append(byReason[agent.Why()], name)
		}
	}
	for _, reason := range slices.Sorted(maps.Keys(byReason)) {
		form := "The agent isn't running on host %s: %s"
		if len(byReason[reason]) > 1 {
			form = "The agents aren't running on hosts %s: %s"
		}
		told = append(told, fmt.Sprintf(form, Enumerate(byReason[reason]), reason))
	}
	return told
}
