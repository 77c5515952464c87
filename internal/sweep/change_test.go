package sweep

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
)

// TestChange changes a sweep with one run in each of these states: succeeded, failed, out of memory for good,
// cancelled, running and waiting, and checks which start over by each rule.
func TestChange(t *testing.T) {
	const all, unsuccessful = "cancelled failed on oom succeeded waits", "cancelled failed oom"
	states := map[string]domain.RunState{
		"succeeded": domain.RunSucceeded, "failed": domain.RunFailed, "oom": domain.RunOutOfMemory,
		"cancelled": domain.RunCancelled, "on": domain.RunRunning,
		"waits": domain.RunQueued,
	}
	for name, test := range map[string]struct {
		change                func(s *domain.Sweep)
		changed, failed, each string // by the rules changed, failed, and all
	}{
		"nothing":         {func(*domain.Sweep) {}, "", "", ""},
		"image":           {func(s *domain.Sweep) { s.Image = "trainer:2" }, all, unsuccessful, all},
		"command":         {func(s *domain.Sweep) { s.Command = []string{"train", "-v"} }, all, unsuccessful, all},
		"common variable": {func(s *domain.Sweep) { s.Env = map[string]string{"EPOCHS": "3"} }, all, unsuccessful, all},
		"container": {
			func(s *domain.Sweep) { s.Container = &domain.Container{ShmSizeMiB: 64} }, all, unsuccessful, all,
		},
		"triggers":  {func(s *domain.Sweep) { s.Triggers = map[string]string{"data": "2"} }, "", unsuccessful, all},
		"resources": {func(s *domain.Sweep) { s.Resources.MemoryMiB = 4600 }, "", unsuccessful, ""},
		"limits":    {func(s *domain.Sweep) { s.Resources.Limits.MemoryMiB = 4600 }, "", unsuccessful, ""},
		"GPU memory": {
			func(s *domain.Sweep) { s.GPUs = &domain.GPURequest{Pool: "p", MemoryMiB: 2400} }, "", unsuccessful, "",
		},
		"no GPUs": {func(s *domain.Sweep) { s.GPUs = nil }, "", unsuccessful, ""},
		"how it is run": {func(s *domain.Sweep) {
			s.MaxParallel, s.Priority, s.GracePeriod = new(3), 1, seconds(1)
			s.Placement = domain.Placement{Strategy: domain.Pack, SpreadBy: "rack"}
			s.Admission, s.Retry, s.OnFailure = domain.Admission{
				FreeMemory: true,
			}, domain.Retry{MaxAttempts: new(9)}, &domain.SweepOnFailure{After: 1}
			s.Objective, s.WaitFor, s.ExitCodes = &domain.Objective{
				Pattern: "(.)",
			}, domain.WaitEnded, &domain.ExitCodeRule{}
		}, "", "", ""},
		"one's variable": {
			func(s *domain.Sweep) { s.Runs["succeeded"]["LR"] = "1" }, "succeeded", "succeeded", "succeeded",
		},
		"one more of it": {func(s *domain.Sweep) { s.Runs["on"]["SEED"] = "1" }, "on", "on", "on"},
		"a key more":     {func(s *domain.Sweep) { s.Runs["new"] = nil }, "", "", ""},
		"a key less":     {func(s *domain.Sweep) { delete(s.Runs, "failed") }, "", "", ""},
		"one's variable and the image": {
			func(s *domain.Sweep) { s.Runs["succeeded"]["LR"], s.Image = "1", "trainer:2" },
			all,
			"cancelled failed oom succeeded", all,
		},
	} {
		for rule, want := range map[domain.Rerun]string{
			"": test.changed, domain.RerunChanged: test.changed, domain.RerunFailed: test.failed,
			domain.RerunAll: test.each,
		} {
			t.Run(fmt.Sprintf("%s, %q", name, rule), func(t *testing.T) {
				s := onGPUs(sweepOf("lr", 0), 1199)
				s.Rerun, s.Triggers = rule, map[string]string{"data": "1"}
				runs := map[string]domain.Run{}
				for key, state := range states {
					s.Runs[key] = map[string]string{"LR": key}
					runs[key] = domain.Run{State: state, Revision: 3, Seal: Seal(s.Run(key)), Attempts: 1}
				}
				stored := documentOf(s)
				stored.Revision = 3
				next := s
				next.Runs = map[string]map[string]string{}
				for key, env := range s.Runs {
					next.Runs[key] = maps.Clone(env)
				}
				test.change(&next)
				doc := Change(stored, domain.SweepDocument{Spec: documentOf(next).Spec, Count: len(next.Runs)})
				var anew []string
				for key, run := range runs {
					if _, stays := next.Runs[key]; stays && Stale(doc, next.Run(key), run) {
						anew = append(anew, key)
					}
				}
				slices.Sort(anew)
				if diff := cmp.Diff(strings.Fields(want), anew, cmpopts.EquateEmpty()); diff != "" {
					t.Errorf("anew start (-want +got):\n%s", diff)
				}
				if n := Reruns(doc, next, runs); n != len(anew) {
					t.Errorf("%d are counted, and %d start anew", n, len(anew))
				}
				// The rest of the document is kept, and what is started once the next one is stored is not stale.
				if doc.Revision != 3 || !doc.Since.Equal(noon) {
					t.Errorf("the next document is %+v", doc)
				}
				doc.Revision++
				for key := range next.Runs {
					run := Start(doc, next.Run(key), runs[key], domain.Assignment{Host: "a"}, 1, noon)
					if run.State = domain.RunFailed; Stale(doc, next.Run(key), run) {
						t.Errorf("%s, just started, is stale", key)
					}
				}
			})
		}
	}
}

// TestChangeOfNone checks a new sweep, of which nothing was stored. All of its runs wait, including those of an earlier
// sweep with its name.
func TestChangeOfNone(t *testing.T) {
	doc := Change(domain.SweepDocument{},
		domain.SweepDocument{Spec: domain.Sweep{Name: "lr", Rerun: domain.RerunFailed}})
	if doc.MinRun != 1 || doc.MinFailed != 0 {
		t.Errorf("the first document is %+v", doc)
	}
	doc.Revision = 1
	for _, run := range []domain.Run{
		{}, {State: domain.RunQueued}, {State: domain.RunRunning}, {State: domain.RunSucceeded},
	} {
		if !Stale(doc, domain.RunSpec{}, run) {
			t.Errorf("%+v is not stale", run)
		}
	}
}

// TestFailingAfterAChange checks that an active run is not stopped to be retried, as it may still succeed. If it fails,
// it starts over, as it was queued before the change.
func TestFailingAfterAChange(t *testing.T) {
	s := sweepOf("lr", 1)
	s.Rerun = domain.RerunFailed
	stored := documentOf(s)
	run := Start(stored, s.Run("r0"), domain.Run{}, domain.Assignment{Host: "a"}, 1, noon)
	next := s
	next.Image = "trainer:2"
	doc := Change(stored, documentOf(next))
	doc.Revision = 2
	if Stale(doc, s.Run("r0"), run) {
		t.Error("it is stale while it runs")
	}
	if ended := Ended(s, run, domain.Observed{State: domain.StateCompleted, ExitCode: new(0)}, nil, 0,
		noon); Stale(doc, s.Run("r0"), ended) {
		t.Error("it is stale though it succeeded")
	}
	if ended := Ended(s, run, domain.Observed{State: domain.StateFailed, ExitCode: new(1)}, nil, 0,
		noon); !Stale(doc, s.Run("r0"), ended) {
		t.Error("it is not stale though it failed")
	}
}

// TestChangesAddUp checks that later changes undo nothing that earlier ones asked for.
func TestChangesAddUp(t *testing.T) {
	s := sweepOf("lr", 1)
	first := documentOf(s)
	s.Image = "trainer:2"
	second := Change(first, documentOf(s))
	second.Revision = 2
	s.Priority = 7
	third := Change(second, documentOf(s))
	third.Revision = 3
	if run := (domain.Run{State: domain.RunSucceeded, Revision: 1, Seal: Seal(s.Run("r0"))}); !Stale(third, s.Run("r0"),
		run) {
		t.Errorf("by %+v it is not stale", third)
	}
	if run := (domain.Run{State: domain.RunSucceeded, Revision: 2, Seal: Seal(s.Run("r0"))}); Stale(third, s.Run("r0"),
		run) {
		t.Errorf("by %+v it is stale", third)
	}
}

func TestSeal(t *testing.T) {
	owns := []domain.RunSpec{{}, {Config: "{}"}, {Config: "[]"}, {Env: map[string]string{"A": "1"}, Config: "{}"}}
	for _, env := range []map[string]string{
		{"A": ""}, {"A": "1"}, {"A": "11"}, {"A1": "1"}, {"B": "1"}, {"A": "1", "B": "1"}, {"A": "1B1"},
		{"A": "B", "B": "A"}, {"A": "A", "B": "B"},
	} {
		owns = append(owns, domain.RunSpec{Env: env})
	}
	seals := map[string]domain.RunSpec{}
	for _, own := range owns {
		if other, twice := seals[Seal(own)]; twice {
			t.Errorf("%v and %v have one seal", own, other)
		}
		seals[Seal(own)] = own
	}
	if Seal(domain.RunSpec{}) != Seal(domain.RunSpec{Key: "r0", Env: map[string]string{}}) {
		t.Error("no variables and none have two seals")
	}
	rapid.Check(t, func(t *rapid.T) {
		texts := rapid.MapOfN(rapid.String(), rapid.String(), 0, 4)
		a, b := texts.Draw(t, "a"), texts.Draw(t, "b")
		if maps.Equal(a, b) != (sealOfEnv(a) == sealOfEnv(b)) {
			t.Fatal("equal ones have other seals, or others one")
		}
		if sealOfEnv(a) != sealOfEnv(maps.Clone(a)) {
			t.Fatal("one has two seals")
		}
	})
}

func sealOfEnv(env map[string]string) string { return Seal(domain.RunSpec{Env: env}) }

// TestAgain checks that only runs whose results are gone start over, and only once.
func TestAgain(t *testing.T) {
	s := sweepOf("lr", 3)
	stored := documentOf(s)
	stored.Revision = 4
	succeeded := func(key string) domain.Run {
		return domain.Run{State: domain.RunSucceeded, Revision: 4, Seal: Seal(s.Run(key)), Attempts: 1}
	}
	next := Again(stored, Change(stored, domain.SweepDocument{Spec: stored.Spec, Count: 3}), []string{"r1"})
	next.Revision = 5
	for _, key := range s.Keys() {
		if stale := Stale(next, s.Run(key), succeeded(key)); stale != (key == "r1") {
			t.Errorf("%s: stale is %t", key, stale)
		}
	}
	if run := Start(next, s.Run("r1"), succeeded("r1"), domain.Assignment{Host: "a"}, 2,
		noon); Stale(next, s.Run("r1"), run) || run.Attempts != 1 {
		t.Errorf("started anew, it is %+v", run)
	}
	later := Change(next, domain.SweepDocument{Spec: stored.Spec, Count: 3})
	if later.Anew["r1"] != 5 {
		t.Errorf("the change after it forgets that it starts anew: %v", later.Anew)
	}
	if stored.Anew != nil {
		t.Error("the stored document was changed")
	}
}
