package sweep

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
)

// TestWished asks for each thing in each state of a run.
func TestWished(t *testing.T) {
	s := sweepOf("lr", 1)
	own := s.Run("r0")
	doc := documentOf(s)
	doc.Revision, doc.MinRun, doc.MinFailed = 5, 2, 3
	reports := []domain.RunReport{{Attempt: 1}}
	of := func(state domain.RunState) domain.Run {
		return domain.Run{
			State: state, Revision: 4, Seal: Seal(own), Attempts: 2, Failures: 1, Reports: reports,
			NotBefore: new(at(9)), FinishedAt: new(at(-9)), Assignment: new(domain.ParsePlace("a")),
		}
	}
	on := func(state domain.RunState) domain.Run { // active, started under an earlier revision
		run := running("a", at(-60))
		run.State, run.Revision, run.Seal, run.Reports = state, 2, Seal(own), reports
		return run
	}
	old := of(domain.RunFailed)
	old.Revision = 1
	states := map[string]domain.Run{
		"nothing": {}, "queued": of(domain.RunQueued), "running": on(domain.RunRunning),
		"paused while it ran": on(domain.RunPaused), "paused while it waited": of(domain.RunPaused),
		"succeeded": of(domain.RunSucceeded), "failed": of(domain.RunFailed),
		"out of memory": of(domain.RunOutOfMemory), "cancelled": of(domain.RunCancelled), "stale": old,
		"stale while it runs": func() domain.Run { run := on(domain.RunRunning); run.Seal = "other"; return run }(),
	}
	// What is not listed stays as it is.
	for wish, after := range map[domain.RunWish]map[string]domain.RunState{
		domain.WishCancel: {
			"nothing": domain.RunCancelled, "queued": domain.RunCancelled, "running": domain.RunCancelled,
			"paused while it ran":    domain.RunCancelled,
			"paused while it waited": domain.RunCancelled, "stale": domain.RunCancelled,
			"stale while it runs": domain.RunCancelled,
		},
		domain.WishPause: {
			"nothing": domain.RunPaused, "queued": domain.RunPaused, "running": domain.RunPaused,
			"stale": domain.RunPaused, "stale while it runs": domain.RunPaused,
		},
		domain.WishResume: {
			"nothing": domain.RunQueued, "paused while it ran": domain.RunRunning,
			"paused while it waited": domain.RunQueued, "cancelled": domain.RunQueued,
			"stale": domain.RunQueued, "stale while it runs": domain.RunQueued,
		},
	} {
		for name, run := range states {
			got := Wished(doc, own, run, wish, "ada", at(5))
			want, changes := after[name]
			if !changes {
				if diff := cmp.Diff(run, got); diff != "" {
					t.Errorf("%s a run that is %s (-before +after):\n%s", wish, name, diff)
				}
				continue
			}
			if got.State != want {
				t.Errorf("%s a run that is %s: it is %s, want %s", wish, name, got.State, want)
			}
			if got.Assignment != run.Assignment {
				t.Errorf("%s a run that is %s: its member, which may still be there, is at %v", wish, name,
					got.Assignment)
			}
			if Stale(doc, own, got) {
				t.Errorf("%s a run that is %s: it starts anew: %+v", wish, name, got)
			}
			if len(got.Reports) != len(run.Reports) {
				t.Errorf("%s a run that is %s: %d ends are to be reported", wish, name, len(got.Reports))
			}
			if by := got.State == domain.RunCancelled || got.State == domain.RunPaused; by != (got.Reason != "") {
				t.Errorf("%s a run that is %s: its reason is %q", wish, name, got.Reason)
			}
			// An active run keeps what it has while it is paused, and does not change.
			underWay := run.Active() && name != "stale while it runs" && want != domain.RunCancelled
			if got.Active() != underWay ||
				underWay && (got.Batch != run.Batch || got.Revision != run.Revision || got.StartedAt != run.StartedAt) {
				t.Errorf("%s a run that is %s: it is %+v", wish, name, got)
			}
			if want == domain.RunQueued && got.NotBefore != nil {
				t.Errorf("%s a run that is %s: it waits until %s", wish, name, got.NotBefore)
			}
		}
	}
}

// TestPauseKeepsTheRevision checks that a run that is started under one revision, paused, resumed, and fails under
// another one is retried as if it had not been paused.
func TestPauseKeepsTheRevision(t *testing.T) {
	s := sweepOf("lr", 1)
	own := s.Run("r0")
	doc := documentOf(s)
	run := Start(doc, own, domain.Run{}, domain.Assignment{Host: "a"}, 1, noon)
	doc.Revision, doc.MinFailed = 2, 2
	run = Wished(doc, own, Wished(doc, own, run, domain.WishPause, "ada", noon), domain.WishResume, "ada", noon)
	if ended := Ended(s, run, failedWith(1, "exit code 1"), nil, 0, noon); !Stale(doc, own, ended) {
		t.Errorf("it is not tried again: %+v", ended)
	}
}

func TestReport(t *testing.T) {
	s := onGPUs(sweepOf("lr", 1), 1199)
	s.Objective = &domain.Objective{Pattern: `acc=(\S+)`}
	run := Start(documentOf(s), s.Run("r0"), domain.Run{}, domain.Assignment{Host: "gpu1", Port: 1, GPUs: "GPU-a"}, 1,
		at(-60))
	run = Ended(s, run, failedWith(3, "exit code 3"), []string{"acc=0.5"}, 0, noon)
	want := domain.RunReport{
		Attempt: 1, State: domain.RunFailed, Host: "gpu1", GPUs: "GPU-a", ExitCode: new(3), StartedAt: new(at(-60)),
		FinishedAt: new(at(-1)), Value: new(0.5), Reason: "exit code 3",
	}
	want.Results, want.EndedAt = "/results/r0", noon
	if diff := cmp.Diff(want, Report(run, "/results/r0", noon)); diff != "" {
		t.Errorf("report (-want +got):\n%s", diff)
	}
	// Cancelled while it waits for its next attempt, it didn't end with the exit code of the last one.
	cancelled := Cancelled(documentOf(s), s.Run("r0"), run, "cancelled by ada", noon)
	if got := Report(cancelled, "", noon); got.ExitCode != nil || got.State != domain.RunCancelled ||
		got.Attempt != 1 || got.Host != "gpu1" {
		t.Errorf("report of a cancelled run: %+v", got)
	}
	never := domain.RunReport{State: domain.RunCancelled, EndedAt: noon, Reason: "cancelled by ada"}
	for name, before := range map[string]domain.Run{
		"never started":       {},
		"waits to start over": Outdated(documentOf(s), s.Run("r0"), run, noon),
	} {
		got := Report(Cancelled(documentOf(s), s.Run("r0"), before, "cancelled by ada", noon), "/results/r0", noon)
		if diff := cmp.Diff(never, got); diff != "" {
			t.Errorf("report of a run that %s (-want +got):\n%s", name, diff)
		}
	}
}
