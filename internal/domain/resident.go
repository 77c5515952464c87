package domain

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// ResidentState is the state of a controller or an agent.
type ResidentState string

// The states of residents.
const (
	ResidentRunning ResidentState = "running"
	// ResidentStarting is ordered and hasn't failed.
	ResidentStarting ResidentState = "starting"
	// ResidentFailing fails and is retried, or no host can run it.
	ResidentFailing ResidentState = "failing"
	// ResidentAbsent isn't even tried.
	ResidentAbsent ResidentState = "absent"
)

// Resident is a cluster's controller, or the agent of a host.
type Resident struct {
	State ResidentState
	// Host is where it runs or was last tried; "" if unknown.
	Host string
	// Error is why it doesn't run, as the engine reports it. Advice is what to do about it.
	Error, Advice string
	// Attempts is how many times in a row it failed.
	Attempts int
	// Metrics is where it answers Prometheus; "" if the cluster doesn't say.
	Metrics string
	// Excused reports that it isn't expected to run: its host is down, drained, or has no address.
	Excused bool
}

const (
	// HopelessAttempts is how often a resident may fail before nobody waits for it any more. One or two failures are
	// normal: a host may learn of the resident's network later than of the resident.
	HopelessAttempts = 4
	// ResidentSettled is how long a resident that failed before has to run until it counts as running.
	ResidentSettled = 5 * time.Second
	// ResidentInARow is how long a resident may run and its end still count as one more failure in a row.
	ResidentInARow = time.Minute
)

// hopeless reports whether there is no point in waiting for it.
func (r Resident) hopeless() bool {
	return r.State == ResidentFailing && r.Attempts >= HopelessAttempts
}

// awaited reports whether it is expected to run soon.
func (r Resident) awaited() bool { return r.State == ResidentStarting || r.State == ResidentFailing }

// missing reports whether it should run, doesn't, and isn't about to.
func (r Resident) missing() bool {
	return r.State == ResidentFailing || r.State == ResidentAbsent && !r.Excused
}

// Why says why it doesn't run and what to do about it; "" if it runs.
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

// Residents are the residents of one cluster.
type Residents struct {
	Controller Resident
	// Agents are the hosts' agents by host name; nil if the cluster runs without agents.
	Agents map[string]Resident
}

// Hopeless describes the residents that fail again and again: why, and what to do.
func (r Residents) Hopeless() []string { return r.describe(Resident.hopeless) }

// Failing describes the residents that fail, if only once so far, and those that no host can run.
func (r Residents) Failing() []string {
	return r.describe(func(r Resident) bool { return r.State == ResidentFailing })
}

// Awaited describes the residents that don't run yet.
func (r Residents) Awaited() []string { return r.describe(Resident.awaited) }

// Missing describes the residents that should run, don't, and aren't about to: why, and what to do.
func (r Residents) Missing() []string { return r.describe(Resident.missing) }

// MissingController is [Residents.Missing] for the controller alone.
func (r Residents) MissingController() []string {
	return Residents{Controller: r.Controller}.Missing()
}

// MissingAgents is [Residents.Missing] for the agents of these hosts alone.
func (r Residents) MissingAgents(hosts ...string) []string {
	agents := maps.Clone(r.Agents)
	maps.DeleteFunc(agents, func(name string, _ Resident) bool { return !slices.Contains(hosts, name) })
	return Residents{Agents: agents}.Missing()
}

// describe describes the residents that meet a condition. Agents with the same reason share a sentence.
func (r Residents) describe(condition func(Resident) bool) (sentences []string) {
	if c := r.Controller; condition(c) {
		at := ""
		if c.Host != "" {
			at = " on host " + c.Host
		}
		sentences = append(sentences, fmt.Sprintf("The controller isn't running%s: %s", at, c.Why()))
	}
	byReason := map[string][]string{}
	for name, agent := range r.Agents {
		if condition(agent) {
			byReason[agent.Why()] = append(byReason[agent.Why()], name)
		}
	}
	for _, reason := range slices.Sorted(maps.Keys(byReason)) {
		form := "The agent isn't running on host %s: %s"
		if len(byReason[reason]) > 1 {
			form = "The agents aren't running on hosts %s: %s"
		}
		sentences = append(sentences, fmt.Sprintf(form, Enumerate(byReason[reason]), reason))
	}
	return sentences
}
