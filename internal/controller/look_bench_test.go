//go:build unix

package controller

import (
	"context"
	"fmt"
	"log/slog"
	"syscall"
	"testing"
	"time"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
	"github.com/trainyard/terraform-provider-trainyard/internal/reconcile"
)

// rest is the engine of a cluster in which nothing changes. Documents, members and their usage are in memory.
type rest struct {
	lacking
	*items

	observed []domain.Observed
	used     engine.Usage
}

func (r *rest) Snapshot() engine.Engine { return r }

func (r *rest) Traits() engine.Traits { return engine.Traits{Name: "rest"} }

func (r *rest) Observe(context.Context, string) ([]domain.Observed, error) { return r.observed, nil }

func (r *rest) Usage(context.Context, time.Duration) (engine.Usage, error) { return r.used, nil }

// atRest returns a cluster with this many groups, roles per group and members per role, all as busy as the
// roles' policies want them.
func atRest(b *testing.B, groups, roles, members int) *rest {
	b.Helper()
	r := &rest{items: newItems(), used: engine.Usage{Members: map[string]engine.MemberUsage{}}}
	edit(b, r.items, "", func(doc *domain.ClusterDocument) {
		doc.Spec = domain.Cluster{Name: "lab", Hosts: map[string]domain.Host{"gpu1": {Address: "10.0.0.1"}}}
	})
	started := noon.Add(-time.Hour)
	windows := []*domain.Duration{nil, new(domain.Duration(15 * time.Second)), new(domain.Duration(time.Minute))}
	for g := range groups {
		document := domain.GroupDocument{
			MinRun: 1, Counts: map[string]int{}, Assignments: map[string]domain.Assignment{},
			Spec: domain.Group{
				Cluster: "lab", Name: fmt.Sprintf("group-%02d", g), Framework: "none",
				Template: domain.Template{Command: []string{"work"}}, Roles: map[string]domain.Role{},
			},
		}
		group := document.Spec.Name
		for n := range roles {
			role := fmt.Sprintf("role-%02d", n)
			document.Spec.Roles[role], document.Counts[role] = domain.Role{
				Resources: domain.ResourceRequirements{CPUs: 4}, OnScale: domain.OnScaleNone,
			}, members
			policy := domain.AutoscalingPolicy{
				Cluster: "lab", Group: group, Role: role, Min: 1, Max: 20,
				Metrics: map[string]domain.ScalingMetric{"cpu": {
					Algorithm: domain.ScalingAlgorithm{Target: &domain.TargetAlgorithm{Value: 60}},
					Source:    domain.ScalingSource{Agent: &domain.AgentSource{Measure: domain.AgentCPUPercent}},
					Window:    windows[n%len(windows)],
				}},
			}
			edit(b, r.items, policy.Key(),
				func(doc *domain.AutoscalingPolicyDocument) { doc.Spec, doc.Before = policy, members })
			for i := range members {
				name := domain.MemberName(group, role, i)
				document.Assignments[name] = domain.Assignment{Host: "gpu1", Port: 20000 + i}
				r.observed = append(r.observed, domain.Observed{
					Name: name, Group: group, Role: role, Index: i, Host: "gpu1", Address: "10.0.0.1:20000", Run: 1,
					State: domain.StateRunning, StartedAt: &started,
				})
				r.used.Members[name] = engine.MemberUsage{
					CPUs: domain.Instant(new(2.4)), SampledAt: noon.AddDate(10, 0, 0),
				} // it never becomes stale
			}
		}
		edit(b, r.items, group, func(doc *domain.GroupDocument) { *doc = document })
	}
	return r
}

// BenchmarkLook makes a thousand policies decide at once about ten thousand members of a cluster at rest. It excludes
// the cost of reading items, members and metrics.
func BenchmarkLook(b *testing.B) {
	e := atRest(b, 20, 50, 10)
	s, err := newScaler(b.Context(), reconcile.Reconciler{Engine: e, Controller: true}, slog.New(slog.DiscardHandler),
		newBoard())
	if err != nil {
		b.Fatal(err)
	}
	now := noon
	look := func() {
		if err := lookAndDecide(b.Context(), s, now); err != nil {
			b.Fatal(err)
		}
		now = now.Add(domain.DefaultScalingInterval)
	}
	look()
	before := processorTime(b)
	b.ReportAllocs()
	for b.Loop() {
		look()
	}
	b.ReportMetric(float64((processorTime(b)-before).Milliseconds())/float64(b.N), "cpu-ms/op")
	for _, status := range s.board.statuses() {
		if status.Current != 10 || status.Desired != 10 || status.Decisions["unchanged"] != b.N+1 {
			b.Fatalf("policy %s/%s is at %+v after %d looks", status.Group, status.Role, status, b.N+1)
		}
	}
}

// processorTime returns the CPU time that this process has used.
func processorTime(b *testing.B) time.Duration {
	b.Helper()
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		b.Fatal(err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}
