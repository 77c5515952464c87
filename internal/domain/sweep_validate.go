package domain

import (
	"fmt"
	"maps"
	"math"
	"path"
	"regexp"
	"slices"
	"strings"
	"time"
)

// MaxRuns limits the runs of a sweep.
const MaxRuns = 10_000

// MaxSettle limits how long a device takes no further run after a start.
const MaxSettle = time.Hour

// Validate returns what is wrong with what only a sweep has. For what a group has, too, see package sweep.
func (s Sweep) Validate() Problems {
	var ps Problems
	CheckName(&ps, Path{"name"}, "sweep", s.Name)
	s.validateKeys(&ps)
	if n := s.MaxParallel; n != nil && *n < 1 {
		ps.Add(Path{"max_parallel"}, "Invalid number of runs",
			"must be 1 or more, got %d. Omit it to run as many as there is room for", *n)
	}
	s.Admission.validate(&ps, s)
	s.Retry.validate(&ps)
	if f := s.OnFailure; f != nil {
		if f.After < 1 {
			ps.Add(Path{"on_failure", "after"}, "Invalid number of runs", "must be 1 or more, got %d", f.After)
		}
		oneOf(&ps, Path{"on_failure", "then"}, "failure action", f.Then, SweepThens)
	}
	if s.OnFinish != nil {
		secret := func(string) string { return "the value (not shown, as it may contain a secret)" }
		s.OnFinish.validate(&ps, Path{"on_finish"}, MaxHookTimeout, secret)
	}
	s.validateConfig(&ps)
	if s.Results != nil {
		s.Results.validate(&ps)
	}
	if s.Objective != nil {
		oneOf(&ps, Path{"objective", "goal"}, "goal", s.Objective.Goal, Goals)
		at := Path{"objective", "pattern"}
		if pattern := checkPattern(&ps, at, s.Objective.Pattern); pattern != nil && pattern.NumSubexp() != 1 {
			ps.Add(at, "Invalid pattern",
				"%q has %d capture groups; it needs exactly one, for the number, such as \"accuracy=([0-9.]+)\"",
				s.Objective.Pattern, pattern.NumSubexp())
		}
	}
	if s.Progress != nil {
		s.Progress.validate(&ps, Path{"progress"}, s)
	}
	oneOf(&ps, Path{"wait_for"}, "state to wait for", s.WaitFor, SweepWaitFors)
	oneOf(&ps, Path{"rerun"}, "rerun rule", s.Rerun, Reruns)
	if len(s.Triggers) > 0 && (s.Rerun == "" || s.Rerun == RerunChanged) {
		ps.Warn(Path{"triggers"}, "Triggers not used",
			"rerun = %q reruns what changed, regardless of the triggers; set rerun to %q or %q", RerunChanged,
			RerunFailed, RerunAll)
		ps.DecidedBy([]Path{{"triggers"}, {"rerun"}})
	}
	if s.Placement.Strategy == OnePerHost {
		ps.Add(Path{"placement", "strategy"}, "Strategy of roles", "%q counts the members of one role, but each run "+
			"has a role of its own; use %q, and resources or max_parallel to limit the runs on a host", OnePerHost,
			Spread)
	}
	if c := s.Container; c != nil && len(c.Secrets) > 0 {
		ps.Add(Path{"container", "secrets"}, "No secrets in sweeps",
			"runs start after the apply, when its secrets are no longer available; mount a file from the hosts, or "+
				"use a group")
	}
	return ps
}

// maxRunConfig limits the file of a run, in bytes, as a chunk of runs has to fit into what an engine stores.
const maxRunConfig = 400_000

// validateConfig checks the files of runs.
func (s Sweep) validateConfig(ps *Problems) {
	for _, key := range slices.Sorted(maps.Keys(s.Config)) {
		at, size := Path{"config", Key(key)}, jsonSize(s.Config[key])
		switch _, found := s.Runs[key]; {
		case !found:
			ps.Add(at, "No such run", "there is no run %q; the keys of config must be keys of runs", key)
			ps.DecidedBy([]Path{at, {"runs"}})
		case s.Config[key] == "":
			ps.Add(at, "Empty config",
				"the file of run %q must not be empty; leave it out, or write \"\\n\" for an empty line", key)
		case size > maxRunConfig:
			ps.Add(at, "Config too large", "the file of run %q takes %d bytes as stored; at most %d are allowed: put "+
				"large files on the hosts, and mount them", key, size, maxRunConfig)
		}
	}
}

func (r Results) validate(ps *Problems) {
	at := Path{"results", "path"}
	switch {
	case path.IsAbs(r.Path):
		validateTarget(ps, at, r.Path)
	case !IsLocal(r.Path) || path.Clean(r.Path) == ".":
		ps.Add(at, "Invalid path",
			"%q is not below the run's own folder: use a path such as \"results\", without \"..\", or an absolute one",
			r.Path)
	}
	oneOf(ps, Path{"results", "on_destroy"}, "on_destroy value", r.OnDestroy, ResultsOnDestroys)
}

// badKeys limits how many unusable keys are reported one by one.
const badKeys = 5

// validateKeys checks that the keys can be part of the names of members.
func (s Sweep) validateKeys(ps *Problems) {
	if len(s.Runs) == 0 {
		ps.Add(Path{"runs"}, "No runs",
			"a sweep needs runs: an environment for each key, such as { \"lr-1\" = { LR = 0.1 }, \"lr-2\" = { "+
				"LR = 0.01 } }")
	}
	if len(s.Runs) > MaxRuns {
		ps.Add(Path{"runs"}, "Too many runs",
			"%d runs exceed the limit of %d per sweep; split them into several sweeps", len(s.Runs), MaxRuns)
	}
	around := len(MemberName(s.Name, "", MaxReplicas-1))
	longest := MaxNameLength - around
	if longest < 1 {
		if len(s.Name) <= MaxNameLength { // otherwise it is reported already
			ps.Add(Path{"name"}, "Invalid sweep name", "%q has %d characters, which leaves none for the keys of runs "+
				"in the names of their members, %s; use %d or fewer",
				s.Name, len(s.Name), RunName("<sweep>", "<key>"), MaxNameLength-(around-len(s.Name))-1)
		}
		return
	}
	var bad []string
	for _, key := range s.Keys() {
		if !dnsLabel.MatchString(key) || len(key) > longest {
			bad = append(bad, key)
		}
	}
	for i, key := range bad[:min(len(bad), badKeys)] {
		more := ""
		if i == badKeys-1 && len(bad) > badKeys {
			more = fmt.Sprintf("; the same goes for %d more", len(bad)-badKeys)
		}
		ps.Add(Path{"runs", Key(key)}, "Invalid key",
			"%q can't be part of a member's name, %s: a key has up to %d lower-case letters, digits and hyphens, "+
				"starting with a letter and not ending with a hyphen, such as %q%s",
			key, RunName("<sweep>", "<key>"), longest, s.usableKey(key, longest), more)
		ps.DecidedBy([]Path{{"name"}, {"runs", Key(key)}})
	}
}

var unusable = regexp.MustCompile(`[^a-z0-9]+`)

// usableKey returns a valid key similar to key. It differs from all other runs' keys if there is room for a number.
func (s Sweep) usableKey(key string, longest int) string {
	name := strings.Trim(unusable.ReplaceAllString(strings.ToLower(key), "-"), "-")
	if name == "" || name[0] < 'a' {
		name = strings.TrimSuffix("run-"+name, "-")
	}
	usable := shortened(name, longest)
	for i := 2; ; i++ {
		number := fmt.Sprintf("-%d", i)
		if _, taken := s.Runs[usable]; !taken || len(number) >= longest {
			return usable
		}
		usable = shortened(name, longest-len(number)) + number
	}
}

func shortened(name string, longest int) string {
	return strings.TrimRight(name[:min(len(name), longest)], "-")
}

func (a Admission) validate(ps *Problems, s Sweep) {
	at := Path{"admission"}
	if a.FreeGPUMemory && s.GPUs == nil {
		ps.Add(at.At("free_gpu_memory"), "No GPUs",
			"free_gpu_memory is set, but the runs request no GPUs; declare gpus with memory_mib")
		ps.DecidedBy([]Path{at.At("free_gpu_memory"), {"gpus"}})
	}
	if a.FreeGPUMemory && s.GPUs != nil && s.GPUs.MemoryMiB == 0 {
		ps.Add(Path{"gpus", "memory_mib"}, "Missing GPU memory",
			"admission.free_gpu_memory compares what is free with what a run needs at its peak: declare it")
		ps.DecidedBy([]Path{at.At("free_gpu_memory"), {"gpus"}})
	}
	if a.FreeMemory && s.Resources.MemoryMiB == 0 {
		ps.Add(Path{"resources", "memory_mib"}, "Missing memory",
			"admission.free_memory compares what is free with what a run needs at its peak: declare it")
		ps.DecidedBy([]Path{at.At("free_memory"), {"resources"}})
	}
	if r := a.ReservePercent; r != nil && (*r < 0 || *r >= 100 || math.IsNaN(*r)) {
		ps.Add(at.At("reserve_percent"), "Invalid reserve", "must be at least 0 and below 100, got %v", *r)
	}
	if a.Settle != nil {
		checkDuration(ps, at.At("settle"), "Invalid duration", a.Settle, 0, MaxSettle)
	}
}

func (r Retry) validate(ps *Problems) {
	at := Path{"retry"}
	if n := r.MaxAttempts; n != nil && *n < 0 {
		ps.Add(at.At("max_attempts"), "Invalid number of attempts", "must be 1 or more, or 0 for no limit, got %d", *n)
	}
	if n := r.OutOfMemory; n != nil && *n < 1 {
		ps.Add(at.At("out_of_memory"), "Invalid number of attempts", "must be 1 or more, got %d", *n)
	}
	notNegative(ps, at.At("delay"), r.Delay)
	for i, pattern := range r.Patterns {
		checkPattern(ps, at.At("out_of_memory_patterns", i), pattern)
	}
}

// checkPattern compiles a regular expression, and returns nil and adds a problem if it is invalid.
func checkPattern(ps *Problems, at Path, pattern string) *regexp.Regexp {
	if pattern == "" {
		ps.Add(at, "Invalid pattern", "an empty pattern matches every line of a log; give a regular expression (RE2)")
		return nil
	}
	compiled, err := regexp.Compile(pattern)
	if err != nil {
		ps.Add(at, "Invalid pattern", "%q is not a regular expression (RE2) of a log line: %v", pattern, err)
		return nil
	}
	return compiled
}
