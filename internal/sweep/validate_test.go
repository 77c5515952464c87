package sweep

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
)

// rendering returns a sweep whose command names the variables of its runs.
func rendering(n int) domain.Sweep {
	s := sweepOf("lr", n)
	s.Command = []string{"python3", "train.py", "--lr", "{{ .Env.LR }}", "--name={{ .Name }}"}
	return s
}

func TestValidateAccepts(t *testing.T) {
	all := onGPUs(rendering(3), 1199)
	all.Image, all.Args, all.WorkingDir = "trainer:1.2", []string{"--seed={{ .Env.SEED }}"}, "/srv"
	all.Env = map[string]string{"SEED": "1", "OUT": "/results/{{ .Role }}"}
	all.Placement = domain.Placement{Labels: map[string]string{"gpu": "a40"}}
	all.GracePeriod, all.ExitCodes = seconds(5), &domain.ExitCodeRule{Final: domain.ExitCodes{"3-5"}}
	longest := sweepOf("lr", 0)
	longest.Runs = map[string]map[string]string{strings.Repeat("k", 55): {"LR": "1"}}
	bare := sweepOf("lr", 0)
	bare.Runs = map[string]map[string]string{"a": nil, "b": {}}
	for name, s := range map[string]domain.Sweep{
		"templates": rendering(250), "all": all, "the longest key": longest, "runs without variables": bare,
	} {
		if problems := Validate(s); len(problems) > 0 {
			t.Errorf("%s: %v", name, problems)
		}
	}
}

// TestValidateRejects introduces one fault at a time that a group could have wrong, too, and expects exactly one
// problem, at the sweep's own attribute.
func TestValidateRejects(t *testing.T) {
	env := func(key, name, value string) func(s *domain.Sweep) {
		return func(s *domain.Sweep) { s.Runs[key] = map[string]string{"LR": "1", name: value} }
	}
	for name, test := range map[string]struct {
		change func(s *domain.Sweep)
		path   string
		says   []string
	}{
		"sweep's own":   {func(s *domain.Sweep) { s.MaxParallel = new(0) }, "max_parallel", []string{"got 0"}},
		"unusable key":  {func(s *domain.Sweep) { s.Runs["R_0"] = nil }, `runs["R_0"]`, []string{`"r-0"`}},
		"no command":    {func(s *domain.Sweep) { s.Command = nil }, "command", []string{"a command or an image"}},
		"empty command": {func(s *domain.Sweep) { s.Command[0] = "" }, "command[0]", []string{"empty"}},
		"resources": {
			func(s *domain.Sweep) { s.Resources.CPUs = 0.001 }, "resources.cpus", []string{"0.001", "at least 0.01"},
		},
		"limits": {
			func(s *domain.Sweep) { s.Resources.Limits.CPUs = 0.5 }, "resources.limits.cpus", []string{"0.5", "1"},
		},
		"pool": {
			func(s *domain.Sweep) { s.GPUs = &domain.GPURequest{Pool: "P"} }, "gpus.pool", []string{`"P"`},
		},
		"count of GPUs": {
			func(s *domain.Sweep) { s.GPUs = &domain.GPURequest{Pool: "p", Count: new(0)} }, "gpus.count",
			[]string{"got 0"},
		},
		"strategy": {
			func(s *domain.Sweep) { s.Placement.Strategy = "best" }, "placement.strategy",
			[]string{`"best"`, `"spread"`},
		},
		"label": {
			func(s *domain.Sweep) { s.Placement.SpreadBy = "rack=a" }, "placement.spread_by",
			[]string{`"rack=a"`, `"rack"`},
		},
		"grace period": {func(s *domain.Sweep) { s.GracePeriod = seconds(-1) }, "grace_period", []string{"-1s"}},
		"exit codes": {
			func(s *domain.Sweep) { s.ExitCodes = &domain.ExitCodeRule{Final: domain.ExitCodes{"1", "x"}} },
			"exit_codes.final[1]", []string{`"x"`},
		},
		"image": {func(s *domain.Sweep) { s.Image = "A" }, "image", []string{`"A"`}},
		"mount": {
			func(s *domain.Sweep) { s.Mounts = []domain.Mount{{Source: "/a", Target: "b"}} }, "mounts[0].target",
			[]string{`"b"`},
		},
		"common variable": {
			func(s *domain.Sweep) { s.Env = map[string]string{"TRAINYARD_X": "1"} }, `env["TRAINYARD_X"]`,
			[]string{"TRAINYARD_"},
		},
		"run's variable": {
			env("r1", "TRAINYARD_RUN", "1"), `runs["r1"]["TRAINYARD_RUN"]`, []string{"TRAINYARD_RUN"},
		},
		"run's bad name":   {env("r2", "A=B", "1"), `runs["r2"]["A=B"]`, []string{`"A=B"`}},
		"run's template":   {env("r2", "X", "{{ .Nope }}"), `runs["r2"]["X"]`, []string{"Nope", "lr-r2-0"}},
		"run's bad syntax": {env("r2", "X", "{{ .Env"), `runs["r2"]["X"]`, []string{"unclosed action"}},
		"run's NUL":        {env("r2", "X", "a\x00b"), `runs["r2"]["X"]`, []string{"NUL"}},
		"common template": {
			func(s *domain.Sweep) { s.Command[3] = "{{ .Lr }}" }, "command[3]", []string{"Lr", ".Env.NAME"},
		},
		"common syntax": {
			func(s *domain.Sweep) { s.Command[3] = "{{ .Env." }, "command[3]", []string{"unexpected"},
		},
		"common argument": {
			func(s *domain.Sweep) { s.Args = []string{"{{ .Env.WARMUP }}"} }, "args[0]", []string{`"WARMUP"`},
		},
		"missing variable": {
			func(s *domain.Sweep) { s.Command[3] = "{{ .Env.LEARNING }}" }, "command[3]",
			[]string{`no entry for key "LEARNING"`, "lr-r0-0"},
		},
		"missing in one": {
			func(s *domain.Sweep) { s.Runs["r2"] = map[string]string{"RATE": "1"} }, "command[3]",
			[]string{`no entry for key "LR"`, "lr-r2-0"},
		},
		"missing in some": {
			func(s *domain.Sweep) { s.Runs["r1"], s.Runs["r2"] = nil, nil }, "command[3]",
			[]string{`no entry for key "LR"`, "lr-r1-0"},
		},
		"variable of a GPU": {
			func(s *domain.Sweep) { *s = onGPUs(*s, 1); env("r1", "CUDA_VISIBLE_DEVICES", "0")(s) },
			`runs["r1"]["CUDA_VISIBLE_DEVICES"]`, []string{`pool "p"`},
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := rendering(3)
			test.change(&s)
			problems := Validate(s)
			if len(problems) != 1 || problems.Err() == nil {
				t.Fatalf("%d problems, want 1 error:\n%v", len(problems), problems)
			}
			if got := problems[0].Path.String(); got != test.path {
				t.Errorf("path %s, want %s", got, test.path)
			}
			says(t, "detail", problems[0].Detail, test.says...)
			for _, input := range problems[0].Inputs {
				if input[0] == "roles" {
					t.Errorf("it is decided by %s, which a sweep does not have", input)
				}
			}
		})
	}
}

// TestMissingVariablesMayBeUnknown checks that a missing variable may be one that is not known yet.
func TestMissingVariablesMayBeUnknown(t *testing.T) {
	s := rendering(3)
	s.Runs["r2"] = nil
	for _, test := range []struct {
		unknown domain.Path
		certain bool
	}{
		{domain.Path{"runs", domain.Key("r2")}, false},
		{domain.Path{"runs", domain.Key("r2"), domain.Key("LR")}, false},
		{domain.Path{"runs"}, false},
		{domain.Path{"env"}, false},
		{domain.Path{"command"}, false},
		{domain.Path{"runs", domain.Key("r1")}, false},
		{domain.Path{"image"}, true},
	} {
		if certain := len(Validate(s).Certain([]domain.Path{test.unknown})) > 0; certain != test.certain {
			t.Errorf("with %s unknown, that LR is missing is certain: %v", test.unknown, certain)
		}
	}
}

// TestValidateReportsEachRun checks that what is wrong with many runs alike is reported once, and what is wrong with
// their own variables for each of them.
func TestValidateReportsEachRun(t *testing.T) {
	s := rendering(300)
	for key, env := range s.Runs {
		env["TRAINYARD_X"] = key
	}
	s.Runs["r000"] = map[string]string{"LR": "1"}
	problems := Validate(s)
	if len(problems) != 299 || problems[0].Path.String() != `runs["r001"]["TRAINYARD_X"]` ||
		problems[298].Path.String() != `runs["r299"]["TRAINYARD_X"]` {
		t.Errorf("%d problems: %v", len(problems), problems[:min(len(problems), 3)])
	}
}

func TestOfRuns(t *testing.T) {
	for _, test := range []struct {
		of   domain.Path
		want string
	}{
		{nil, ""},
		{domain.Path{"command", 1}, "command[1]"},
		{domain.Path{"roles"}, "runs"},
		{domain.Path{"roles", domain.Key("a")}, `runs["a"]`},
		{domain.Path{"roles", domain.Key("a"), "env", domain.Key("X")}, `runs["a"]["X"]`},
		{domain.Path{"roles", domain.Key("a"), "gpus", "memory_mib"}, "gpus.memory_mib"},
	} {
		before := slices.Clone(test.of)
		problems := domain.Problems{{Path: test.of, Inputs: []domain.Path{test.of}}}
		got := OfRuns(problems)[0]
		if got.Path.String() != test.want || got.Inputs[0].String() != test.want {
			t.Errorf("%s became %s, decided by %s; want %s", before, got.Path, got.Inputs, test.want)
		}
		if !slices.Equal(before, test.of) {
			t.Errorf("%s was changed", before)
		}
	}
}

func BenchmarkValidate(b *testing.B) {
	for _, n := range []int{50, 1000, 10_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			s := rendering(n)
			for b.Loop() {
				if problems := Validate(s); len(problems) > 0 {
					b.Fatal(problems)
				}
			}
		})
	}
}
