package logs

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/trainyard/terraform-provider-trainyard/internal/command"
	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
	"github.com/trainyard/terraform-provider-trainyard/internal/reconcile"
)

// found returns a group of a parameter server and two workers, the first of them the chief,
// with these observed members.
func found(t *testing.T, when domain.When, observed ...domain.Observed) foundGroup {
	t.Helper()
	one, two := 1, 2
	doc := domain.GroupDocument{
		Spec: domain.Group{
			Cluster: "lab", Name: "mnist", Framework: "tensorflow_v1",
			Template:   domain.Template{Command: []string{"train"}},
			Roles:      map[string]domain.Role{"ps": {Replicas: &one}, "worker": {Replicas: &two}},
			Completion: domain.Completion{When: when}, Triggers: map[string]string{"run": "7", "commit": "abc"},
		},
		Counts: map[string]int{"ps": 1, "worker": 2}, MinRun: 4,
		Assignments: map[string]domain.Assignment{
			"mnist-ps-0": {Host: "gpu1", Port: 8000}, "mnist-worker-0": {Host: "gpu1", Port: 9000},
			"mnist-worker-1": {Host: "gpu1", Port: 9001},
		},
	}
	s := foundGroup{
		Decision: reconcile.Current(engine.Traits{}, map[string]domain.Host{"gpu1": {Address: "10.0.0.1"}}, doc),
	}
	for _, o := range observed {
		for i, m := range s.Members {
			if o.Hash == "" && m.Name == o.Name {
				o.Hash = s.Layout.Hash(i)
			}
		}
		s.observed = append(s.observed, o)
	}
	return s
}

// ended returns a member that ended in the present run.
func ended(name string, code int) domain.Observed {
	o := domain.Observed{Name: name, Run: 4, State: domain.StateCompleted, ExitCode: &code}
	if code != 0 {
		o.State, o.LastError = domain.StateFailed, "exit code"
	}
	return o
}

func TestVerdict(t *testing.T) {
	runs := func(name string) domain.Observed {
		return domain.Observed{Name: name, Run: 4, State: domain.StateRunning}
	}
	earlier := ended("mnist-worker-0", 0)
	earlier.Run = 3
	other := ended("mnist-worker-0", 7)
	other.Hash = "of another specification"
	unknown := ended("mnist-worker-0", 1)
	unknown.ExitCode = nil
	at := func(o domain.Observed, second int64) domain.Observed {
		moment := time.Unix(second, 0)
		o.FinishedAt = &moment
		return o
	}
	late := runs("mnist-worker-0")
	late.State, late.StopReason = domain.StateStopped, domain.StopDeadline
	for name, c := range map[string]struct {
		when     domain.When
		observed []domain.Observed
		ended    bool
		code     int
	}{
		"running": {
			observed: []domain.Observed{runs("mnist-ps-0"), runs("mnist-worker-0"), runs("mnist-worker-1")},
		},
		"another worker failed": {
			observed: []domain.Observed{runs("mnist-ps-0"), runs("mnist-worker-0"), ended("mnist-worker-1", 5)},
			when:     domain.WhenChief,
		},
		"the chief completed": {
			observed: []domain.Observed{runs("mnist-ps-0"), ended("mnist-worker-0", 0), ended("mnist-worker-1", 5)},
			when:     domain.WhenChief, ended: true,
		},
		"the chief failed": {
			observed: []domain.Observed{ended("mnist-ps-0", 9), ended("mnist-worker-0", 7), ended("mnist-worker-1", 5)},
			when:     domain.WhenChief, ended: true, code: 7,
		},
		"one of all failed": {
			observed: []domain.Observed{runs("mnist-ps-0"), ended("mnist-worker-0", 0), ended("mnist-worker-1", 5)},
			when:     domain.WhenAll, ended: true, code: 5,
		},
		"all failed, the second first": {
			observed: []domain.Observed{
				at(ended("mnist-worker-0", 143), 20), at(ended("mnist-worker-1", 5), 10),
			},
			when: domain.WhenAll, ended: true, code: 5,
		},
		"all failed, one at an unknown time": {
			observed: []domain.Observed{ended("mnist-worker-0", 143), at(ended("mnist-worker-1", 5), 10)},
			when:     domain.WhenAll, ended: true, code: 5,
		},
		"all failed, nobody knows when": {
			observed: []domain.Observed{ended("mnist-worker-0", 7), ended("mnist-worker-1", 5)},
			when:     domain.WhenAll, ended: true, code: 7,
		},
		"without an exit code": {
			observed: []domain.Observed{unknown}, when: domain.WhenChief, ended: true, code: 1,
		},
		"its deadline is over": {
			observed: []domain.Observed{late}, when: domain.WhenChief, ended: true, code: 1,
		},
		"the run before completed": {observed: []domain.Observed{earlier}, when: domain.WhenChief},
		"of another specification": {observed: []domain.Observed{other}, when: domain.WhenChief},
		"of a service all have ended": {
			observed: []domain.Observed{ended("mnist-worker-0", 0), ended("mnist-worker-1", 0)}, when: domain.WhenNever,
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := found(t, c.when, c.observed...).verdict()
			exit, _ := errors.AsType[*command.ExitError](err)
			switch {
			case got != c.ended, (exit != nil) != (c.code != 0), exit != nil && exit.Code != c.code:
				t.Errorf("ended is %t, and the error %v, want %t and exit code %d", got, err, c.ended, c.code)
			case exit != nil && !strings.HasPrefix(exit.Error(), "group mnist failed: "):
				t.Errorf("it says %q", exit)
			}
		})
	}
}

func TestChosen(t *testing.T) {
	for name, c := range map[string]struct {
		when    domain.When
		options options
		want    []string
	}{
		"the chief":       {when: domain.WhenChief, want: []string{"mnist-worker-0"}},
		"those of a rule": {when: domain.WhenAll, want: []string{"mnist-worker-0", "mnist-worker-1"}},
		"of a service":    {when: domain.WhenNever, want: []string{"mnist-ps-0", "mnist-worker-0", "mnist-worker-1"}},
		"all": {
			when: domain.WhenChief, options: options{all: true},
			want: []string{"mnist-ps-0", "mnist-worker-0", "mnist-worker-1"},
		},
		"one": {
			when: domain.WhenChief, options: options{members: []string{"mnist-ps-0"}}, want: []string{"mnist-ps-0"},
		},
	} {
		got, err := found(t, c.when).chosen(c.options)
		if slices.Sort(got); err != nil || !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, %v, want %q", name, got, err, c.want)
		}
	}
	_, err := found(t, domain.WhenChief).chosen(options{members: []string{"mnist-ps-9"}})
	if err == nil || !strings.Contains(err.Error(),
		`group "mnist" has no member "mnist-ps-9"; it has mnist-ps-0, mnist-worker-0, mnist-worker-1`) {
		t.Errorf("of no member: %v", err)
	}
}

func TestIsOf(t *testing.T) {
	s := found(t, domain.WhenChief)
	for _, c := range []struct {
		triggers map[string]string
		want     bool
	}{{nil, true}, {map[string]string{"run": "7"}, true}, {map[string]string{"run": "8"}, false},
		{map[string]string{"run": "7", "more": ""}, false}} {
		if got := s.isOf(c.triggers); got != c.want {
			t.Errorf("%v: %t", c.triggers, got)
		}
	}
}
