package domain_test

import (
	"fmt"
	"math"
	"regexp"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
)

// sweepOf returns a sweep with runs of these keys, each with an environment of its own.
func sweepOf(keys ...string) domain.Sweep {
	s := domain.Sweep{
		Cluster: "lab", Name: "lr", Template: domain.Template{Command: []string{"train"}},
		Runs: map[string]map[string]string{},
	}
	for _, key := range keys {
		s.Runs[key] = map[string]string{"KEY": key}
	}
	return s
}

// fullSweep sets everything there is to set.
func fullSweep() domain.Sweep {
	s := sweepOf("seed-0", "seed-1")
	s.MaxParallel, s.Priority = new(8), -3
	s.Resources = domain.ResourceRequirements{CPUs: 1, MemoryMiB: 2300}
	s.GPUs = &domain.GPURequest{Pool: "a40", MemoryMiB: 1199}
	s.Placement = domain.Placement{Strategy: domain.Pack, Labels: map[string]string{"gpu": "a40"}}
	s.Admission = domain.Admission{
		FreeGPUMemory: true, FreeMemory: true, ReservePercent: new(0.0), Settle: new(domain.Duration(0)),
	}
	s.Retry = domain.Retry{
		MaxAttempts: new(0), OutOfMemory: new(1), Patterns: []string{"^out of memory"}, Delay: new(domain.Duration(0)),
	}
	s.OnFailure = &domain.SweepOnFailure{After: 1, Then: domain.SweepDrain}
	s.Config, s.Results = map[string]string{
		"seed-0": "{}",
	}, &domain.Results{Path: "out/results", OnDestroy: domain.DeleteResults}
	s.Objective = &domain.Objective{Pattern: `(?:acc|accuracy)=([0-9.]+)`, Goal: domain.GoalMinimise}
	s.Progress = &domain.SweepProgress{
		Pattern: `episode (?P<step>[0-9]+)`, Threshold: new(0.0), Settle: new(domain.Duration(time.Second)),
	}
	s.WaitFor, s.Rerun = domain.WaitEnded, domain.RerunFailed
	s.Triggers = map[string]string{"data": "2"}
	return s
}

func TestValidateAcceptsSweeps(t *testing.T) {
	for name, s := range map[string]domain.Sweep{
		"the least":         sweepOf("a"),
		"all":               fullSweep(),
		"the longest key":   sweepOf(strings.Repeat("k", 55)),
		"a key with digits": sweepOf("a1-0--b"),
	} {
		if problems := s.Validate(); len(problems) > 0 {
			t.Errorf("%s: %v", name, problems)
		}
	}
}

// TestValidateRejectsSweeps introduces one fault at a time, and expects exactly one problem there.
func TestValidateRejectsSweeps(t *testing.T) {
	runs := func(n int) map[string]map[string]string {
		all := map[string]map[string]string{}
		for i := range n {
			all[fmt.Sprintf("r%d", i)] = nil
		}
		return all
	}
	for name, test := range map[string]struct {
		change func(s *domain.Sweep)
		path   string
		says   []string
	}{
		"no name":   {func(s *domain.Sweep) { s.Name = "" }, "name", []string{"sweep", `"lab-1"`}},
		"bad name":  {func(s *domain.Sweep) { s.Name = "LR" }, "name", []string{`"LR"`, "lower-case"}},
		"long name": {func(s *domain.Sweep) { s.Name = strings.Repeat("x", 64) }, "name", []string{"64", "63"}},
		"a name without room for keys": {func(s *domain.Sweep) { s.Name = strings.Repeat("x", 57) },
			"name", []string{"57 characters", "<sweep>-<key>-0", "56"}},
		"no runs": {
			func(s *domain.Sweep) { s.Runs, s.Config = nil, nil }, "runs", []string{`"lr-1" = { LR = 0.1 }`},
		},
		"too many runs": {
			func(s *domain.Sweep) { s.Runs, s.Config = runs(domain.MaxRuns+1), nil }, "runs",
			[]string{"10001", "10000"},
		},
		"none at a time": {
			func(s *domain.Sweep) { s.MaxParallel = new(0) }, "max_parallel", []string{"got 0", "1 or more", "Omit it"},
		},
		"fewer than none": {
			func(s *domain.Sweep) { s.MaxParallel = new(-4) }, "max_parallel", []string{"got -4", "1 or more"},
		},

		"a file of no run": {
			func(s *domain.Sweep) { s.Config["seed-7"] = "{}" }, `config["seed-7"]`,
			[]string{`"seed-7"`, "keys of runs"},
		},
		"an empty file": {
			func(s *domain.Sweep) { s.Config["seed-1"] = "" }, `config["seed-1"]`, []string{`"seed-1"`, `"\n"`},
		},
		"a large file": {
			func(s *domain.Sweep) { s.Config["seed-1"] = strings.Repeat("\"", 200_001) }, `config["seed-1"]`,
			[]string{`"seed-1"`, "400002", "400000"},
		},
		"results nowhere": {
			func(s *domain.Sweep) { s.Results.Path = "" }, "results.path", []string{`""`, `"results"`},
		},
		"results outside": {
			func(s *domain.Sweep) { s.Results.Path = "results/../../other" }, "results.path",
			[]string{`"results/../../other"`, `".."`},
		},
		"results all about": {func(s *domain.Sweep) { s.Results.Path = "./" }, "results.path", []string{`"./"`}},
		"results at the root": {
			func(s *domain.Sweep) { s.Results.Path = "/.." }, "results.path", []string{`"/.."`, "root"},
		},
		"end of results": {
			func(s *domain.Sweep) { s.Results.OnDestroy = "burn" }, "results.on_destroy",
			[]string{`"burn"`, `"keep", "delete"`},
		},

		"free memory of no GPUs": {
			func(s *domain.Sweep) { s.GPUs = nil }, "admission.free_gpu_memory",
			[]string{"no GPUs", "gpus with memory_mib"},
		},
		"free memory of unknown need": {func(s *domain.Sweep) { s.GPUs.MemoryMiB = 0 },
			"gpus.memory_mib", []string{"admission.free_gpu_memory", "declare it"}},
		"free RAM of unknown need": {func(s *domain.Sweep) { s.Resources.MemoryMiB = 0 },
			"resources.memory_mib", []string{"admission.free_memory", "declare it"}},
		"negative reserve": {func(s *domain.Sweep) { s.Admission.ReservePercent = new(-0.5) },
			"admission.reserve_percent", []string{"got -0.5", "at least 0 and below 100"}},
		"all reserved": {
			func(s *domain.Sweep) { s.Admission.ReservePercent = new(100.0) }, "admission.reserve_percent",
			[]string{"got 100"},
		},
		"no number": {
			func(s *domain.Sweep) { s.Admission.ReservePercent = new(math.NaN()) }, "admission.reserve_percent",
			[]string{"NaN"},
		},
		"negative settle": {
			func(s *domain.Sweep) { s.Admission.Settle = new(domain.Duration(-time.Second)) }, "admission.settle",
			[]string{"-1s", "1h"},
		},
		"settling for ever": {
			func(s *domain.Sweep) { s.Admission.Settle = new(domain.Duration(2 * time.Hour)) }, "admission.settle",
			[]string{"2h", "1h"},
		},

		"negative attempts": {
			func(s *domain.Sweep) { s.Retry.MaxAttempts = new(-1) }, "retry.max_attempts",
			[]string{"got -1", "0 for no limit"},
		},
		"negative attempts out of memory": {func(s *domain.Sweep) { s.Retry.OutOfMemory = new(-2) },
			"retry.out_of_memory", []string{"got -2", "1 or more"}},
		"negative delay": {
			func(s *domain.Sweep) { s.Retry.Delay = new(domain.Duration(-1)) }, "retry.delay",
			[]string{"-1ns", `"0s" or more`},
		},
		"own pattern": {func(s *domain.Sweep) { s.Retry.Patterns = []string{"fine", "(oom"} },
			"retry.out_of_memory_patterns[1]", []string{`"(oom"`, "RE2", "missing closing )"}},
		"empty pattern": {func(s *domain.Sweep) { s.Retry.Patterns = []string{""} },
			"retry.out_of_memory_patterns[0]", []string{"empty", "every line"}},

		"on no failure": {
			func(s *domain.Sweep) { s.OnFailure.After = 0 }, "on_failure.after", []string{"got 0", "1 or more"},
		},
		"unknown reaction": {
			func(s *domain.Sweep) { s.OnFailure.Then = "halt" }, "on_failure.then",
			[]string{`"halt"`, `"stop", "drain"`},
		},
		"unknown goal": {
			func(s *domain.Sweep) { s.Objective.Goal = "max" }, "objective.goal",
			[]string{`"max"`, `"maximise", "minimise"`},
		},
		"pattern without its group": {func(s *domain.Sweep) { s.Objective.Pattern = "accuracy=[0-9.]+" },
			"objective.pattern",
			[]string{`"accuracy=[0-9.]+"`, "0 capture groups", "needs exactly one", `accuracy=([0-9.]+)`}},
		"pattern with two groups": {
			func(s *domain.Sweep) { s.Objective.Pattern = "(acc|loss)=([0-9.]+)" }, "objective.pattern",
			[]string{"2 capture groups", "needs exactly one"},
		},
		"no pattern": {
			func(s *domain.Sweep) { s.Objective.Pattern = "" }, "objective.pattern", []string{"empty"},
		},
		"no regular expression": {
			func(s *domain.Sweep) { s.Objective.Pattern = "([0-9" }, "objective.pattern", []string{`"([0-9"`, "RE2"},
		},
		"progress of every line": {
			func(s *domain.Sweep) { s.Progress.Pattern = "" }, "progress.pattern",
			[]string{"it matches every line", "step (?P<step>[0-9]+)"},
		},
		"progress of no line": {
			func(s *domain.Sweep) { s.Progress.Pattern = "(step" }, "progress.pattern",
			[]string{`"(step"`, "missing closing )"},
		},
		"all progress of a run": {
			func(s *domain.Sweep) { s.Progress.Threshold = new(1.5) }, "progress.threshold",
			[]string{"1.5", "between 0 and 1"},
		},
		"progress at a glance": {
			func(s *domain.Sweep) { s.Progress.Settle = new(domain.Duration(0)) }, "progress.settle",
			[]string{"0s", "between 1s and 1h"},
		},
		"unknown state": {
			func(s *domain.Sweep) { s.WaitFor = "running" }, "wait_for",
			[]string{`"running"`, `"accepted", "completed"`},
		},
		"unknown rule": {
			func(s *domain.Sweep) { s.Rerun = "never" }, "rerun", []string{`"never"`, `"changed", "failed", "all"`},
		},
		"one per host": {func(s *domain.Sweep) { s.Placement.Strategy = domain.OnePerHost },
			"placement.strategy", []string{`"one_per_host"`, `"spread"`, "max_parallel"}},
		"secrets": {func(s *domain.Sweep) {
			s.Container = &domain.Container{Secrets: map[string]domain.SecretFile{"token": {Version: "1"}}}
		}, "container.secrets", []string{"after the apply"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := fullSweep()
			test.change(&s)
			problems := s.Validate()
			if len(problems) != 1 || problems.Err() == nil {
				t.Fatalf("%d problems, want 1 error:\n%v", len(problems), problems)
			}
			if got := problems[0].Path.String(); got != test.path {
				t.Errorf("path %s, want %s", got, test.path)
			}
			if !contains(problems[0].Detail, test.says...) {
				t.Errorf("detail %q does not say all of %q", problems[0].Detail, test.says)
			}
		})
	}
}

// TestHookURLIsNotShown checks that what is wrong with a hook's URL does not reveal it, as it may be a secret.
func TestHookURLIsNotShown(t *testing.T) {
	s := sweepOf("a")
	s.OnFinish = &domain.ScalingHook{URL: "hooks.example.com/services/hunter2"}
	err := s.Validate().Err()
	if err == nil || !strings.Contains(err.Error(), "is not a valid URL") || strings.Contains(err.Error(), "hunter2") {
		t.Errorf("it says %v", err)
	}
}

// TestValidateWarnsOfTriggers checks that triggers that rerun nothing do not block an apply.
func TestValidateWarnsOfTriggers(t *testing.T) {
	for _, rule := range []domain.Rerun{"", domain.RerunChanged} {
		s := fullSweep()
		s.Rerun = rule
		problems := s.Validate()
		if len(problems) != 1 || problems.Err() != nil || problems[0].Path.String() != "triggers" ||
			!contains(problems[0].Detail, `"failed"`, `"all"`) {
			t.Errorf("rerun = %q: %v", rule, problems)
		}
		if unknown := []domain.Path{{"rerun"}}; len(problems.Certain(unknown)) > 0 {
			t.Errorf("rerun = %q: it is warned of though the rule is not known yet", rule)
		}
	}
}

// TestValidateWarnsOfProgress checks that progress that can decide nothing does not block an apply.
func TestValidateWarnsOfProgress(t *testing.T) {
	s := fullSweep()
	s.MaxParallel = new(1)
	problems := s.Validate()
	if len(problems) != 1 || problems.Err() != nil || problems[0].Path.String() != "progress" ||
		!contains(problems[0].Detail, "max_parallel is 1") {
		t.Errorf("%v", problems)
	}
	if unknown := []domain.Path{{"max_parallel"}}; len(problems.Certain(unknown)) > 0 {
		t.Error("it is warned of though max_parallel is not known yet")
	}
}

var suggestion = regexp.MustCompile(`such as "([^"]*)"`)

// suggested returns the key that a problem proposes.
func suggested(t rapid.TB, p domain.Problem) string {
	t.Helper()
	match := suggestion.FindStringSubmatch(p.Detail)
	if match == nil {
		t.Fatalf("%q proposes nothing", p.Detail)
	}
	return match[1]
}

func TestUnusableKeys(t *testing.T) {
	for _, test := range []struct {
		keys []string // the first of them is not usable
		want string
	}{
		{[]string{"lr=0.01"}, "lr-0-01"},
		{[]string{"Seed_7"}, "seed-7"},
		{[]string{"7"}, "run-7"},
		{[]string{"-a-"}, "a"},
		{[]string{""}, "run"},
		{[]string{"äöü"}, "run"},
		{[]string{"a.b", "a-b"}, "a-b-2"},
		{[]string{"a.b", "a-b", "a-b-2"}, "a-b-3"},
		{[]string{strings.Repeat("k", 56)}, strings.Repeat("k", 55)},
		{[]string{strings.Repeat("k", 54) + "_k"}, strings.Repeat("k", 54)},
		{[]string{strings.Repeat("k", 56), strings.Repeat("k", 55)}, strings.Repeat("k", 53) + "-2"},
	} {
		problems := sweepOf(test.keys...).Validate()
		if len(problems) != 1 {
			t.Errorf("%q: %d problems, want 1: %v", test.keys, len(problems), problems)
			continue
		}
		p := problems[0]
		if want := (domain.Path{"runs", domain.Key(test.keys[0])}).String(); p.Path.String() != want ||
			!contains(p.Detail, fmt.Sprintf("%q", test.keys[0]), "up to 55") {
			t.Errorf("%q: got %v", test.keys, p)
		}
		if got := suggested(t, p); got != test.want {
			t.Errorf("%q: %q is suggested, want %q", test.keys, got, test.want)
		}
	}
}

// TestManyUnusableKeys checks that only a few of many unusable keys are reported, with the number of the others.
func TestManyUnusableKeys(t *testing.T) {
	s := sweepOf("fine")
	for i := range 1000 {
		s.Runs[fmt.Sprintf("lr=%d", i)] = nil
	}
	problems := s.Validate()
	if len(problems) != 5 || !contains(problems[4].Detail, "995 more") {
		t.Errorf("%d problems: %v", len(problems), problems)
	}
}

// TestSuggestedKeysAreUsable checks that a suggested key is valid, however long the sweep's name is.
func TestSuggestedKeysAreUsable(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		key := rapid.OneOf(
			rapid.String(), rapid.StringMatching(`[A-Za-z0-9_.=-]{0,70}`), rapid.StringMatching(`[a-z0-9-]{50,70}`),
			rapid.StringMatching(`[0-9]{1,3}`),
		)
		s := sweepOf(rapid.SliceOfNDistinct(key, 1, 4, rapid.ID).Draw(t, "keys")...)
		s.Name = rapid.StringMatching(`[a-z]{1,56}`).Draw(t, "name")
		for _, p := range s.Validate() {
			bad, isKey := p.Path[len(p.Path)-1].(domain.Key)
			if !isKey {
				t.Fatalf("got %v", p)
			}
			better := suggested(t, p)
			alone := domain.Sweep{Name: s.Name, Runs: map[string]map[string]string{better: nil}}
			if problems := alone.Validate(); len(problems) > 0 {
				t.Fatalf("%q is suggested for %q, and: %v", better, bad, problems)
			}
			if _, taken := s.Runs[better]; taken && len(s.Name) < 50 {
				t.Fatalf("%q is suggested for %q, and another run has it", better, bad)
			}
			if name := domain.RunName(s.Name, better); len(name) > domain.MaxNameLength {
				t.Fatalf("the member would be called %s", name)
			}
		}
	})
}
