package logs

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/trainyard/terraform-provider-trainyard/internal/command"
	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/storetest"
	"github.com/trainyard/terraform-provider-trainyard/internal/sshclient"
)

// fake is the engine of a cluster with the group of [found], whose members have these logs.
type fake struct {
	rest
	storetest.Memory

	observed []domain.Observed
	logs     map[string]string
	// down returns the error of a read of the store; nil for none.
	down     func() error
	stateDir string
}

// rest embeds the engine one level deeper, so that the store's methods take precedence.
type rest struct{ engine.Engine }

func (f *fake) Traits() engine.Traits { return engine.Traits{StateDir: f.stateDir} }

func (f *fake) Snapshot() engine.Engine                                    { return f }
func (f *fake) Observe(context.Context, string) ([]domain.Observed, error) { return f.observed, nil }
func (*fake) Watch(context.Context) (<-chan struct{}, error)               { return make(chan struct{}), nil }

func (f *fake) Get(ctx context.Context, key engine.Key) (engine.Item, error) {
	if f.down != nil {
		return engine.Item{}, f.down()
	}
	return f.Memory.Get(ctx, key)
}

// Follow returns the log of a member; the host of one without is down.
func (f *fake) Follow(_ context.Context, member string, from engine.LogPlace) (engine.LogPart, error) {
	log, up := f.logs[member]
	switch {
	case !up:
		return engine.LogPart{}, fmt.Errorf("host gpu2 %w", engine.ErrUnreachable)
	case from.Mark != "":
		return engine.LogPart{Next: from.Mark}, nil
	}
	return engine.LogPart{Lines: []string{log}, Next: "read"}, nil
}

// following returns a follower of the group's members, with its output and warnings.
func following(t *testing.T, f *fake) (follow *follower, out, warnings *bytes.Buffer) {
	t.Helper()
	s := found(t, domain.WhenAll, f.observed...)
	f.observed = s.observed
	s.Document.Revision = 1
	storetest.Set(&f.Memory, domain.ClusterDocument{Header: domain.Header{Revision: 1}, Spec: domain.Cluster{
		Name: "lab", Hosts: map[string]domain.Host{"gpu1": {Address: "10.0.0.1"}},
	}})
	storetest.Set(&f.Memory, s.Document)
	out, warnings = &bytes.Buffer{}, &bytes.Buffer{}
	return &follower{
		options: options{follow: true, all: true}, target: target{group: "mnist"}, engine: f, out: out,
		warnings: warnings, places: map[string]engine.LogPlace{},
	}, out, warnings
}

// TestUnreadLog: a group that has ended decides the exit code even if a log can't be read, which is a warning. The logs
// of the other members are written. Without --follow, an unread log is an error.
func TestUnreadLog(t *testing.T) {
	for name, c := range map[string]struct {
		code int
		want error
	}{"completed": {0, nil}, "failed": {3, &command.ExitError{Code: 3}}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := &fake{
					observed: []domain.Observed{
						ended("mnist-ps-0", 0), ended("mnist-worker-0", c.code), ended("mnist-worker-1", 0),
					},
					logs: map[string]string{"mnist-worker-0": "zero", "mnist-worker-1": "one"},
				}
				follow, out, warnings := following(t, f)
				began := time.Now()
				err := follow.run(t.Context())
				if tried := time.Since(began); tried < lastLines || tried > 2*lastLines {
					t.Errorf("it tries for %s", tried)
				}
				code := 0
				if exit, is := errors.AsType[*command.ExitError](err); is {
					code = exit.Code
				}
				if code != c.code || (err == nil) != (code == 0) {
					t.Errorf("it ends with %v", err)
				}
				if want := "mnist-worker-0 | zero\nmnist-worker-1 | one\n"; out.String() != want {
					t.Errorf("the logs are %q", out)
				}
				const unread = "member mnist-ps-0: host gpu2 can't be reached\n"
				if warnings.String() != "logs: trying again: "+unread+"logs: "+unread {
					t.Errorf("the warnings are %q", warnings)
				}
				follow.follow = false
				if _, err := follow.look(t.Context()); !errors.Is(err, engine.ErrUnreachable) {
					t.Errorf("without --follow: %v", err)
				}
			})
		})
	}
}

func unreachable() error { return fmt.Errorf("host gpu1 %w", engine.ErrUnreachable) }

// TestFollowOutage: an outage from the start is shown at once, and ends the command once it has lasted too long.
func TestFollowOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		follow, _, warnings := following(t, &fake{down: unreachable})
		ctx, stop := context.WithTimeout(t.Context(), 2*engine.OutagePatience)
		defer stop()
		began := time.Now()
		err := follow.run(ctx)
		if lasted := time.Since(began); !errors.Is(err, engine.ErrUnreachable) || lasted > engine.OutagePatience*3/2 {
			t.Errorf("after %s: %v", lasted, err)
		}
		if strings.Count(warnings.String(), "\n") != 1 || !strings.Contains(warnings.String(), "host gpu1 can't be") {
			t.Errorf("the warnings are %q", warnings)
		}
	})
}

// TestFollowCreated: hosts that an apply may still create are awaited for as long as it takes. Why is shown at once,
// and repeated.
func TestFollowCreated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		follow, _, warnings := following(t, &fake{down: unreachable})
		follow.triggers = map[string]string{"run": "7"}
		ctx, stop := context.WithTimeout(t.Context(), engine.OutagePatience*5/2)
		defer stop()
		if err := follow.run(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("it ends with %v", err)
		}
		if want := strings.Repeat("logs: trying again: host gpu1 can't be reached\n", 3); warnings.String() != want {
			t.Errorf("the warnings are %q", warnings)
		}
	})
}

// TestFollowRefused: that a host has appeared, and refuses the login, is shown at once. It ends the command once it has
// lasted too long.
func TestFollowRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		appears := time.Now().Add(engine.OutagePatience * 3 / 2)
		follow, _, warnings := following(t, &fake{down: func() error {
			if time.Now().Before(appears) {
				return unreachable()
			}
			return fmt.Errorf("%w: %w", unreachable(), sshclient.ErrHostKeyUnknown)
		}})
		follow.triggers = map[string]string{"run": "7"}
		ctx, stop := context.WithTimeout(t.Context(), 3*engine.OutagePatience)
		defer stop()
		err := follow.run(ctx)
		waited := time.Since(appears)
		if !errors.Is(err, sshclient.ErrHostKeyUnknown) || waited < engine.OutagePatience ||
			waited > engine.OutagePatience*11/10 {
			t.Errorf("%s after it has appeared: %v", waited, err)
		}
		if shown := strings.Count(warnings.String(), "host key unknown"); shown != 1 {
			t.Errorf("the warnings are %q", warnings)
		}
	})
}

// TestFollowPlanned: before the apply of a plan, a missing group is awaited without a word.
func TestFollowPlanned(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		follow, _, warnings := following(t, &fake{down: func() error { return engine.ErrNotFound }})
		follow.triggers = map[string]string{"run": "7"}
		ctx, stop := context.WithTimeout(t.Context(), 2*engine.OutagePatience)
		defer stop()
		if err := follow.run(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("it ends with %v", err)
		}
		if warnings.Len() > 0 {
			t.Errorf("the warnings are %q", warnings)
		}
	})
}

// TestFollowMisplaced: once a plan has been applied, its run has to be found. The error says where it was looked for,
// and why that may be the wrong place.
func TestFollowMisplaced(t *testing.T) {
	const stateDir, elsewhere = "If the provider sets state_dir, set TRAINYARD_STATE_DIR to the same folder",
		"If the provider sets ssh.user, put it into the cluster's endpoint, such as ssh://ops@gpu1"
	lab := domain.ClusterRef{Engine: "process", Name: "lab"}
	remote := domain.ClusterRef{Engine: "systemd", Name: "lab", Endpoint: "ssh://gpu1"}
	for name, c := range map[string]struct {
		cluster  domain.ClusterRef
		stateDir string
		down     func() error
		want     []string
	}{
		"missing": {
			lab, "/var/trainyard", func() error { return engine.ErrNotFound },
			[]string{"group mnist is not in cluster lab (engine process, /var/trainyard): ", "not found", stateDir},
		},
		"missing on hosts": {
			remote, "", func() error { return engine.ErrNotFound },
			[]string{"is not in cluster lab (engine systemd, ssh://gpu1): ", "not found", elsewhere},
		},
		"another run": {
			lab, "/var/trainyard", nil, []string{"other triggers than the plan's", stateDir},
		},
		"of the default": {
			domain.ClusterRef{Engine: "swarm", Name: "lab"}, "", nil,
			[]string{"(engine swarm, the default endpoint)", elsewhere},
		},
	} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "applied")
			synctest.Test(t, func(t *testing.T) {
				follow, _, _ := following(t, &fake{down: c.down, stateDir: c.stateDir})
				follow.target = target{c.cluster, "mnist", map[string]string{"run": "8"}}
				follow.applied = file
				var applied time.Time
				time.AfterFunc(2*engine.OutagePatience, func() {
					applied = time.Now()
					if err := os.WriteFile(file, nil, 0o600); err != nil {
						t.Error(err)
					}
				})
				ctx, stop := context.WithTimeout(t.Context(), 4*engine.OutagePatience)
				defer stop()
				err := follow.run(ctx)
				if waited := time.Since(applied); applied.IsZero() || waited < settling || waited > 2*settling {
					t.Errorf("it ends %s after the apply", waited)
				}
				for _, want := range c.want {
					if err == nil || !strings.Contains(err.Error(), want) {
						t.Errorf("%v, which does not say %q", err, want)
					}
				}
			})
		})
	}
}

// TestFollowAppliedUnreachable: once a plan has been applied, an outage ends the command as one of a present run does.
func TestFollowAppliedUnreachable(t *testing.T) {
	file := filepath.Join(t.TempDir(), "applied")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		follow, _, _ := following(t, &fake{down: unreachable})
		follow.triggers, follow.applied = map[string]string{"run": "7"}, file
		ctx, stop := context.WithTimeout(t.Context(), 3*engine.OutagePatience)
		defer stop()
		if err := follow.run(ctx); !errors.Is(err, engine.ErrUnreachable) {
			t.Errorf("it ends with %v", err)
		}
	})
}

// TestFollowEndless: a planned group that never completes is an error once it is found, unless it has a deadline.
// Others may be followed: somebody watches.
func TestFollowEndless(t *testing.T) {
	planned, hour := map[string]string{"run": "7"}, domain.Duration(time.Hour)
	for name, c := range map[string]struct {
		triggers map[string]string
		deadline *domain.Duration
		endless  bool
	}{
		"planned":         {triggers: planned, endless: true},
		"with a deadline": {triggers: planned, deadline: &hour},
		"present":         {},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := &fake{observed: []domain.Observed{{Name: "mnist-worker-0", Run: 4, State: domain.StateRunning}}}
				follow, _, _ := following(t, f)
				f.logs = map[string]string{"mnist-worker-0": "zero"}
				follow.triggers = c.triggers
				document := found(t, domain.WhenNever).Document
				document.Revision, document.Spec.Completion.Deadline = 2, c.deadline
				storetest.Set(&f.Memory, document)
				ctx, stop := context.WithTimeout(t.Context(), time.Minute)
				defer stop()
				err := follow.run(ctx)
				endless := err != nil && strings.Contains(err.Error(), "group mnist never completes")
				if endless != c.endless {
					t.Errorf("it ends with %v", err)
				}
			})
		})
	}
}
