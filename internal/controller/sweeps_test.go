package controller

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
	"github.com/trainyard/terraform-provider-trainyard/internal/reconcile"
	"github.com/trainyard/terraform-provider-trainyard/internal/sweep"
)

// track is a lab whose members are runs: each ends at the look after the one that saw it running, as the
// first letter of its key says.
type track struct {
	*lab
	// begun counts the starts of members by name, and won those after a success; most is the
	// highest number running at once.
	begun, won map[string]int
	most       int
	// attempts counts the ends of members by name.
	attempts map[string]int
}

// newTrack returns a lab with a sweep of runs that succeed (s), fail (f), and fail once (o).
func newTrack(t *testing.T, changes func(s *domain.Sweep)) *track {
	t.Helper()
	l := &track{
		lab: newLab(t, func(*domain.AutoscalingPolicy) {}), begun: map[string]int{}, won: map[string]int{},
		attempts: map[string]int{},
	}
	clear(l.members)
	s := domain.Sweep{
		Cluster: "lab", Name: "lr", Template: domain.Template{Command: []string{"train"}}, MaxParallel: new(3),
		Retry: domain.Retry{MaxAttempts: new(2), Delay: new(domain.Duration(0))},
		Runs:  map[string]map[string]string{},
	}
	for i := range 4 {
		for _, kind := range []string{"s", "f", "o"} {
			s.Runs[fmt.Sprint(kind, "-", i)] = map[string]string{"I": fmt.Sprint(i)}
		}
	}
	changes(&s)
	_, err := reconcile.Reconciler{Engine: l}.PutSweep(t.Context(), s, true)
	l.must(nil, err)
	return l
}

// Start starts what is staged for a run, drops what was staged for earlier ones, and counts it.
func (l *track) Start(ctx context.Context, group string, run int) error {
	l.mu.Lock()
	for name, spec := range l.staged {
		if spec.Run < run {
			delete(l.staged, name)
			continue
		}
		if known := l.members[name]; known.Run == spec.Run {
			continue
		}
		l.begun[name]++
		if l.attempts[name+" won"] > 0 {
			l.won[name]++
		}
	}
	l.mu.Unlock()
	err := l.lab.Start(ctx, group, run)
	running := 0
	for _, o := range l.members {
		if o.State == domain.StateRunning {
			running++
		}
	}
	l.most = max(l.most, running)
	return err
}

// Logs returns the same line for all members.
func (l *track) Logs(context.Context, string, engine.LogOptions) ([]string, error) {
	return []string{"epoch 1"}, nil
}

// Snapshot returns the engine itself.
func (l *track) Snapshot() engine.Engine { return l }

// Usage measures nothing.
func (l *track) Usage(context.Context, time.Duration) (engine.Usage, error) {
	return engine.Usage{}, nil
}

// finish ends all running members.
func (l *track) finish() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for name, o := range l.members {
		if o.State != domain.StateRunning {
			continue
		}
		l.attempts[name]++
		code := 0
		if o.Role[0] == 'f' || o.Role[0] == 'o' && l.attempts[name] == 1 {
			code = 1
		}
		o.State, o.ExitCode, o.FinishedAt = domain.StateFailed, &code, new(l.now)
		if code == 0 {
			o.State = domain.StateCompleted
			l.attempts[name+" won"]++
		}
		l.members[name] = o
	}
}

// sweeper returns the sweeper of a newly started controller.
func (l *track) sweeper(e engine.Engine) *sweeper {
	log := slog.New(slog.DiscardHandler)
	return newSweeper(reconcile.Reconciler{Engine: e, Controller: true}, log, newReporter(l.Context(), log))
}

// summary returns the stored state of the sweep.
func (l *track) summary() sweep.Summary {
	l.Helper()
	found, err := reconcile.Reconciler{Engine: l}.SweepRuns(l.Context(), "lr")
	l.must(nil, err)
	return sweep.Summarise(found.Document, found.Spec, found.Runs)
}

// check fails unless all runs have ended, and none was started after it succeeded.
func (l *track) check() {
	l.Helper()
	if got, want := l.summary().String(), "8 succeeded, 4 failed"; got != want {
		l.Errorf("the runs are %s, want %s", got, want)
	}
	for name, n := range l.won {
		l.Errorf("%s was started %d times after its success", name, n)
	}
	if l.most > 3 {
		l.Errorf("%d runs were on at once, and max_parallel is 3", l.most)
	}
	if len(l.members) > 0 {
		l.Errorf("members are left: %v", l.members)
	}
}

// A controller that dies before or after any of its writes leaves nothing undone, and nothing is done twice. With room
// for only two runs, the sweep has requested more meanwhile, and does not any longer.
func TestSweeperDies(t *testing.T) {
	for name, cpus := range map[string]float64{"with room": 0, "without": 40} {
		t.Run(name, func(t *testing.T) { sweeperDies(t, cpus) })
	}
}

func sweeperDies(t *testing.T, cpus float64) {
	asked := false
	errDead := errors.New("dead")
	for deadly := 0; ; deadly++ {
		died := false
		for _, after := range []bool{false, true} {
			l := newTrack(t, func(s *domain.Sweep) { s.Resources.CPUs = cpus })
			var mutex sync.Mutex // several logs are stored at once
			made, dead := 0, false
			e := engine.Intercept(l, func(_ context.Context, call engine.Call, do func() error) error {
				mutex.Lock()
				if call.Changes && !dead {
					made++
				}
				gone, dies := dead, call.Changes && !dead && made-1 == deadly
				died, dead = died || dies, dead || dies
				mutex.Unlock()
				if gone || dies && !after {
					return errDead
				}
				err := do()
				if dies {
					return errDead
				}
				return err
			})
			s := l.sweeper(e)
			for range 60 {
				if _, err := s.look(t.Context(), time.Now()); err != nil {
					if !errors.Is(err, errDead) {
						t.Fatalf("change %d: %v", deadly, err)
					}
					s, dead = l.sweeper(e), false
					continue
				}
				asked = asked || cpus > 0 && len(l.asked()) > 0
				l.finish()
			}
			l.check()
			if left := l.asked(); len(left) > 0 {
				t.Errorf("in the end %v ask for room", left)
			}
			if t.Failed() {
				t.Fatalf("the controller died at change %d (after it: %v)", deadly, after)
			}
		}
		if !died {
			if deadly < 20 {
				t.Errorf("only %d changes were made", deadly)
			}
			if asked != (cpus > 0) {
				t.Errorf("it has asked for room: %t", asked)
			}
			return
		}
	}
}

// What an attempt used at most is not that of the next one.
func TestPeaksOfAnAttempt(t *testing.T) {
	l := newTrack(t, func(s *domain.Sweep) { s.MaxParallel = new(12) })
	s := l.sweeper(l)
	l.must(s.look(t.Context(), time.Now()))
	for _, key := range []string{"s-0", "s-1"} {
		raise(s.peaks.memory, domain.RunName("lr", key), domain.Measure{Max: new(30_000.0)})
	}
	l.must(nil, l.Remove(t.Context(), []string{domain.RunName("lr", "s-0")})) // it starts again
	l.must(s.look(t.Context(), time.Now()))
	l.finish()
	l.must(s.look(t.Context(), time.Now()))
	runs := s.sweeps["lr"].record.Runs()
	first, again := runs["s-1"], runs["s-0"]
	if first.PeakMemoryMiB == nil || *first.PeakMemoryMiB != 30_000 {
		t.Errorf("the peak of the first attempt is missing: %+v", first)
	}
	if again.State != domain.RunSucceeded || again.Attempts != 2 || again.PeakMemoryMiB != nil {
		t.Errorf("the second attempt has a peak, or did not run: %+v", again)
	}
}

// Nor is it that of a later sweep of the same name, whether anybody looked while there was none.
func TestPeaksOfADestroyedSweep(t *testing.T) {
	for name, looks := range map[string]bool{"seen to be gone": true, "not seen to be gone": false} {
		t.Run(name, func(t *testing.T) {
			l := newTrack(t, func(s *domain.Sweep) { s.MaxParallel = new(12) })
			s, r := l.sweeper(l), reconcile.Reconciler{Engine: l}
			found, err := r.Sweep(t.Context(), "lr")
			l.must(nil, err)
			l.must(s.look(t.Context(), time.Now()))
			member := domain.RunName("lr", "s-0")
			raise(s.peaks.memory, member, domain.Measure{Max: new(30_000.0)})
			raise(s.peaks.gpu, member, domain.Measure{Max: new(20_000.0)})
			l.must(nil, r.DeleteSweep(t.Context(), "lr", nil))
			if looks {
				l.must(s.look(t.Context(), time.Now()))
			}
			l.must(r.PutSweep(t.Context(), found.Spec, true))
			l.must(s.look(t.Context(), time.Now()))
			l.finish()
			l.must(s.look(t.Context(), time.Now()))
			run := s.sweeps["lr"].record.Runs()["s-0"]
			if run.State != domain.RunSucceeded || run.PeakMemoryMiB != nil || run.PeakGPUMemoryMiB != nil {
				t.Errorf("the run of the new sweep has a peak, or did not run: %+v", run)
			}
		})
	}
}

// measured is a track whose members use 30,000 MiB each, also those that are about to go.
type measured struct {
	*track
	of []string
}

func (m measured) Snapshot() engine.Engine { return m }

func (m measured) Usage(context.Context, time.Duration) (engine.Usage, error) {
	usage := engine.Usage{Members: map[string]engine.MemberUsage{}}
	for _, key := range m.of {
		usage.Members[domain.RunName("lr", key)] = engine.MemberUsage{
			Group: "lr", Role: key, MemoryMiB: domain.Measure{Max: new(30_000.0)},
		}
	}
	return usage, nil
}

// What the member of a cancelled run uses until it is gone does not count for the next attempt.
func TestPeaksOfLeavingMembers(t *testing.T) {
	l := measured{newTrack(t, func(s *domain.Sweep) { s.MaxParallel = new(12) }), []string{"s-0", "s-1"}}
	s := l.sweeper(l)
	l.must(s.look(t.Context(), time.Now()))
	l.request("s-0", domain.WishCancel)
	l.must(s.look(t.Context(), time.Now()))
	s.peaks.due = time.Time{}
	s.peaks.measure(t.Context(), s, time.Now())
	cancelled, _ := s.peaks.take(domain.RunName("lr", "s-0"))
	running, _ := s.peaks.take(domain.RunName("lr", "s-1"))
	if cancelled != nil || running == nil || *running != 30_000 {
		t.Errorf("the peak of the cancelled run is %v, and of the running one %v", cancelled, running)
	}
}

// crowded is a track with a host that can't take members, as its disk is full.
type crowded struct {
	*track
	full string
}

func (c *crowded) Snapshot() engine.Engine { return c }

func (c *crowded) Stage(ctx context.Context, specs []domain.MemberSpec) error {
	var failed error
	for _, spec := range specs {
		if spec.Host == c.full {
			failed = errors.New("host " + c.full + ": no space left on device")
			continue
		}
		if err := c.track.Stage(ctx, []domain.MemberSpec{spec}); err != nil {
			return err
		}
	}
	return failed
}

// A host that can't take runs holds up none on other hosts.
func TestSweeperStartsBesideFullDisk(t *testing.T) {
	l := &crowded{track: newTrack(t, func(s *domain.Sweep) { s.Resources.CPUs = 40 }), full: "b"}
	s := l.sweeper(l)
	_, err := s.look(t.Context(), time.Now())
	if _, launch := errors.AsType[*reconcile.LaunchError](err); !launch {
		t.Fatalf("it says %v", err)
	}
	if len(l.members) != 1 {
		t.Fatalf("the members are %v, want one on host a", l.members)
	}
	if got, want := l.summary().Counts[domain.RunRunning], 1; got != want {
		t.Errorf("%d runs are stored as running, want %d", got, want)
	}
}

// A run that can't be rendered once its host is known is retried after a while, and not at each look.
func TestSweeperCannotRender(t *testing.T) {
	l := newTrack(t, func(s *domain.Sweep) {
		// an apply renders it with a port that no run gets
		s.Command = []string{"train", `{{ if ne .Port 1 }}{{ address "nobody" 0 }}{{ end }}`}
	})
	s := l.sweeper(l)
	looked := time.Now()
	_, err := s.look(t.Context(), looked)
	if _, launch := errors.AsType[*reconcile.LaunchError](err); !launch ||
		!strings.Contains(err.Error(), `there is no role "nobody"`) {
		t.Fatalf("it says %v", err)
	}
	found, err := reconcile.Reconciler{Engine: l}.SweepRuns(t.Context(), "lr")
	l.must(nil, err)
	for _, run := range found.Runs {
		if run.State != domain.RunQueued || run.NotBefore == nil || !run.NotBefore.After(looked) || run.Failures > 0 {
			t.Errorf("a run has become %+v", run)
		}
	}
	if len(found.Runs) != 3 || len(l.members) > 0 {
		t.Errorf("%d runs were to start, and there are %v", len(found.Runs), l.members)
	}
}
