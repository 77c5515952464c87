package doctor

import (
	"maps"
	"slices"

	"github.com/trainyard/terraform-provider-trainyard/internal/agent/libc"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/swarm"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/systemd"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/systemd/facts"
)

// Engines are those that hosts are examined for, sorted.
var Engines = []string{swarm.Name, systemd.Name}

// Host is all that is known of a host that is examined.
type Host struct {
	facts.Facts
	Details Details
	// Engines are those that it is examined for.
	Engines []string
	// Lacks are what it lacks for the engine systemd.
	Lacks []facts.Lack
	// Here are the programs for hosts of its architecture that this machine has.
	Here Programs
}

// Programs are those that hosts are brought, or run, and what they need of them.
type Programs struct {
	// Platform is the system and architecture of this machine, whose program a Swarm's controller and agents are.
	Platform string
	// Known is whether there is a program for the host.
	Known    bool
	Program  libc.Need
	HasAgent bool
	Agent    libc.Need
}

// Result is what a check came to.
type Result string

// The results, from the best to the worst.
const (
	NotApplicable Result = "not_applicable"
	OK            Result = "ok"
	Warning       Result = "warning"
	Problem       Result = "problem"
)

var results = []Result{NotApplicable, OK, Warning, Problem}

// worse returns the worse one of two results.
func worse(a, b Result) Result {
	if slices.Index(results, a) < slices.Index(results, b) {
		return b
	}
	return a
}

// Finding is what a check found on a host.
type Finding struct {
	// Check is the name of the check.
	Check  string `json:"check"`
	Result Result `json:"result"`
	// Found is the rest of a sentence about the host.
	Found string `json:"found"`
	// Fix is a command that mends it on the host, "" where none does or nothing is to be mended.
	Fix string `json:"fix,omitempty"`
	// Engines are those that a warning or problem is about.
	Engines []string `json:"engines,omitempty"`
}

// verdict is what a check says, whichever engines were asked about.
type verdict struct {
	// results are by engine; one that is not there has nothing to do with the check.
	results    map[string]Result
	found, fix string
}

// forAll is a verdict that is the same for all engines.
func forAll(result Result, found, fix string) verdict {
	v := verdict{results: map[string]Result{}, found: found, fix: fix}
	for _, engine := range Engines {
		v.results[engine] = result
	}
	return v
}

// swarmProblem is a problem for a Swarm, and something else for bare hosts.
func swarmProblem(forSystemd Result, found, fix string) verdict {
	return verdict{map[string]Result{swarm.Name: Problem, systemd.Name: forSystemd}, found, fix}
}

// forSwarm and forSystemd are verdicts that matter to one engine only.
func forSwarm(result Result, found, fix string) verdict {
	return verdict{map[string]Result{swarm.Name: result}, found, fix}
}

func forSystemd(result Result, found string) verdict {
	return verdict{results: map[string]Result{systemd.Name: result}, found: found}
}

func ok(found string) verdict { return forAll(OK, found, "") }

func notApplicable(found string) verdict { return forAll(NotApplicable, found, "") }

// concerns reports whether a verdict is about any of some engines.
func (v verdict) concerns(engines []string) bool {
	return slices.ContainsFunc(engines, func(engine string) bool { return v.results[engine] != "" })
}

// finding narrows a verdict to some engines.
func (v verdict) finding(check string, engines []string) Finding {
	f := Finding{Check: check, Result: NotApplicable, Found: v.found}
	for _, engine := range engines {
		if result, has := v.results[engine]; has {
			f.Result = worse(f.Result, result)
		}
	}
	if f.Result != Warning && f.Result != Problem {
		return f
	}
	f.Fix = v.fix
	for _, engine := range slices.Sorted(maps.Keys(v.results)) {
		if v.results[engine] == f.Result && slices.Contains(engines, engine) {
			f.Engines = append(f.Engines, engine)
		}
	}
	return f
}

// check looks at one thing.
type check struct {
	name string
	look func(Host) verdict
}

// checks are all that hosts are examined by, in the order in which they are shown, and in which fixes are best made. A
// new one is a line here.
var checks = []check{
	{"sudo", lack(facts.SubjectRoot, becomesRoot)},
	{"systemd", lack(facts.SubjectSystemd, runsSystemd)},
	{"architecture", architecture},
	{"glibc", library},
	{"commands", lack(facts.SubjectTools, hasTools)},
	{"machine-id", lack(facts.SubjectIdentity, hasIdentity)},
	{"clock", clock},
	{"cgroups", controlGroups},
	{"disk", lack(facts.SubjectDisk, hasRoom)},
	{"nfs", nfs},
	{"driver", driver},
	{"docker", dockerEngine},
	{"docker-disk", dockerDisk},
	{"toolkit", toolkit},
	{"swarm", membership},
	{"swarm-ports", ports},
}

// Examine returns what the checks find on a host that its engines are about.
func Examine(host Host) []Finding {
	var findings []Finding
	for _, c := range checks {
		if v := c.look(host); v.concerns(host.Engines) {
			findings = append(findings, v.finding(c.name, host.Engines))
		}
	}
	return findings
}

// Ready reports for each of the engines whether the host is fit for it: no finding is a problem of it.
func Ready(findings []Finding, engines []string) map[string]bool {
	ready := map[string]bool{}
	for _, engine := range engines {
		ready[engine] = !slices.ContainsFunc(findings, func(f Finding) bool {
			return f.Result == Problem && slices.Contains(f.Engines, engine)
		})
	}
	return ready
}
