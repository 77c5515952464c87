package sweep

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/placement"
)

// testCase is a decision's input, and the expected result.
type testCase struct {
	cluster Cluster
	queues  []Queue
	starts  []string
	// waits are words of why sweeps wait. Sweeps not listed do not wait.
	waits    map[string][]string
	next     time.Time
	measured bool
}

func (s testCase) check(t *testing.T) {
	t.Helper()
	got := Admit(s.cluster, s.queues, noon)
	if diff := cmp.Diff(s.starts, startTexts(got.Starts), cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("starts (-want +got):\n%s", diff)
	}
	for sweep, parts := range s.waits {
		says(t, "sweep "+sweep+" waits", got.Waits[sweep], append(parts, "")...)
		if got.Waits[sweep] == "" {
			t.Errorf("of sweep %s nothing is said", sweep)
		}
	}
	for sweep, why := range got.Waits {
		if _, wanted := s.waits[sweep]; !wanted {
			t.Errorf("sweep %s waits: %s", sweep, why)
		}
	}
	if !got.Next.Equal(s.next) {
		t.Errorf("next is at %s, want %s", got.Next, s.next)
	}
	if got.Measured != s.measured {
		t.Errorf("it waits for what is measured: %v", got.Measured)
	}
	slices.Reverse(s.queues)
	if diff := cmp.Diff(got, Admit(s.cluster, s.queues, noon)); diff != "" {
		t.Errorf("the order of sweeps matters:\n%s", diff)
	}
}

func run(t *testing.T, testCases map[string]testCase) {
	for name, s := range testCases {
		t.Run(name, s.check)
	}
}

// aged returns a queue created some seconds after noon, with a priority.
func aged(s domain.Sweep, seconds float64, priority int) Queue {
	s.Priority = priority
	q := queueOf(s)
	q.Document.Since = at(seconds)
	return q
}

// claimOf returns a claim on room for one CPU by a group with a priority, which has waited since some seconds after
// noon.
func claimOf(priority int, seconds float64) Claim {
	group := domain.Group{
		Name: "g", Priority: priority,
		Roles: map[string]domain.Role{"w": {Resources: domain.ResourceRequirements{CPUs: 1}}},
	}
	return Claim{
		Request:  domain.RoomRequest{Spec: group, Since: at(seconds)},
		Document: domain.GroupDocument{Spec: group, Assignments: map[string]domain.Assignment{"g-w-0": {Host: "a"}}},
	}
}

// atMost returns a sweep that runs some at a time.
func atMost(n int, s domain.Sweep) domain.Sweep {
	s.MaxParallel = &n
	return s
}

func TestAdmitInOrder(t *testing.T) {
	small := Cluster{Hosts: hostsOf(2, "a")}
	free := domain.ResourceRequirements{}
	run(t, map[string]testCase{
		"nothing": {cluster: small},
		"by key": {
			cluster: Cluster{Hosts: hostsOf(12, "a")}, queues: []Queue{queueOf(sweepOf("lr", 11))},
			starts: strings.Split(
				"lr/r00 on a,lr/r01 on a,lr/r02 on a,lr/r03 on a,lr/r04 on a,lr/r05 on a,lr/r06 on a,lr/r07 on a,lr/r08 on a,lr/r09 on a,lr/r10 on a",
				",",
			),
		},
		"the older one first": {
			cluster: small, queues: []Queue{aged(sweepOf("b", 2), -9, 0), aged(sweepOf("a", 2), 0, 0)},
			starts: []string{"b/r0 on a", "b/r1 on a"}, waits: map[string][]string{"a": {"0 of 2 CPUs free"}},
		},
		"by name at one time": {
			cluster: small, queues: []Queue{queueOf(sweepOf("b", 2)), queueOf(sweepOf("a", 1))},
			starts: []string{"a/r0 on a", "b/r0 on a"}, waits: map[string][]string{"b": {"CPUs free"}},
		},
		"priority before age": {
			cluster: small, queues: []Queue{aged(sweepOf("b", 2), -9, 1), aged(sweepOf("a", 1), 0, 2)},
			starts: []string{"a/r0 on a", "b/r0 on a"}, waits: map[string][]string{"b": {"CPUs free"}},
		},
		"negative priority": {
			cluster: small, queues: []Queue{aged(sweepOf("b", 2), -9, -1), aged(sweepOf("a", 3), 0, 0)},
			starts: []string{"a/r0 on a", "a/r1 on a"},
			waits:  map[string][]string{"a": {"CPUs free"}, "b": {`sweep "a" is ahead of it`}},
		},
		"those that are on take up what they have": {
			cluster: small,
			queues:  []Queue{queueOf(sweepOf("a", 3)).with(map[string]domain.Run{"r1": running("a", noon)})},
			starts:  []string{"a/r0 on a"}, waits: map[string][]string{"a": {"CPUs free"}},
		},
		"what they were started with counts": {
			cluster: small,
			queues: []Queue{queueOf(sweepOf("a", 3)).with(map[string]domain.Run{"r1": func() domain.Run {
				run := running("a", noon)
				run.Needs = &domain.RunNeeds{Resources: domain.ResourceRequirements{CPUs: 2}}
				return run
			}()})},
			waits: map[string][]string{"a": {"0 of 2 CPUs free"}},
		},
		"groups take up what they have": {
			cluster: Cluster{Hosts: hostsOf(2, "a"), Groups: map[string]domain.GroupDocument{"g": {
				Spec: domain.Group{
					Name: "g", Roles: map[string]domain.Role{"w": {Resources: domain.ResourceRequirements{CPUs: 1}}},
				},
				Assignments: map[string]domain.Assignment{"g-w-0": {Host: "a"}},
			}}},
			queues: []Queue{queueOf(sweepOf("a", 3))}, starts: []string{"a/r0 on a"},
			waits: map[string][]string{"a": {"0 of 2 CPUs free"}},
		},
		"a group that waits and is more important comes first": {
			cluster: Cluster{Hosts: hostsOf(2, "a"), Claims: []Claim{claimOf(1, 0)}},
			queues:  []Queue{queueOf(sweepOf("a", 3))}, starts: []string{"a/r0 on a"},
			waits: map[string][]string{"a": {"0 of 2 CPUs free"}},
		},
		"so does one that has waited for longer": {
			cluster: Cluster{Hosts: hostsOf(2, "a"), Claims: []Claim{claimOf(0, -9)}},
			queues:  []Queue{aged(sweepOf("a", 3), 0, 0)}, starts: []string{"a/r0 on a"},
			waits: map[string][]string{"a": {"0 of 2 CPUs free"}},
		},
		"one that has not comes after": {
			cluster: Cluster{Hosts: hostsOf(2, "a"), Claims: []Claim{claimOf(0, 9)}},
			queues:  []Queue{aged(sweepOf("a", 2), 0, 0)}, starts: []string{"a/r0 on a", "a/r1 on a"},
		},
		"what has ended does not start again": {
			cluster: small, queues: []Queue{queueOf(sweepOf("a", 5)).with(map[string]domain.Run{
				"r0": endedRun(domain.RunSucceeded, "a", noon), "r1": endedRun(domain.RunFailed, "a", noon),
				"r2": endedRun(domain.RunCancelled, "a", noon),
				"r3": endedRun(domain.RunOutOfMemory, "a", noon), "r4": endedRun(domain.RunQueued, "a", noon),
			})}, starts: []string{"a/r4 on a"},
		},
		"what is paused does not start, and keeps what it has": {
			cluster: small, queues: []Queue{queueOf(sweepOf("a", 4)).with(map[string]domain.Run{
				"r0": func() domain.Run {
					run := running("a", noon)
					run.State = domain.RunPaused
					return run
				}(), "r1": {State: domain.RunPaused}, "r2": {State: domain.RunPaused, Revision: -1, Seal: "other"},
			})}, starts: []string{"a/r3 on a"},
		},
		"what has ended starts anew with another environment": {
			cluster: small, queues: []Queue{queueOf(sweepOf("a", 2)).with(map[string]domain.Run{
				"r0": endedRun(domain.RunSucceeded, "a", noon), "r1": {State: domain.RunSucceeded, Seal: "other"},
			})}, starts: []string{"a/r1 on a"},
		},
		"max_parallel": {
			cluster: Cluster{Hosts: hostsOf(9, "a")}, queues: []Queue{queueOf(atMost(2, sweepOf("a", 9)))},
			starts: []string{"a/r0 on a", "a/r1 on a"}, waits: map[string][]string{"a": {"max_parallel is 2"}},
		},
		"max_parallel counts those that are on": {
			cluster: Cluster{Hosts: hostsOf(9, "a")},
			queues:  []Queue{queueOf(atMost(2, sweepOf("a", 9))).with(map[string]domain.Run{"r5": running("a", noon)})},
			starts:  []string{"a/r0 on a"}, waits: map[string][]string{"a": {"max_parallel is 2"}},
		},
		"max_parallel was lowered": {
			cluster: Cluster{Hosts: hostsOf(9, "a")},
			queues: []Queue{queueOf(atMost(1, sweepOf("a", 9))).with(map[string]domain.Run{
				"r5": running("a", noon), "r6": running("a", noon),
			})},
			waits: map[string][]string{"a": {"max_parallel is 1"}},
		},
		"max_parallel keeps nobody else": {
			cluster: small, queues: []Queue{queueOf(atMost(1, sweepOf("a", 9))), queueOf(sweepOf("b", 1))},
			starts: []string{"a/r0 on a", "b/r0 on a"}, waits: map[string][]string{"a": {"max_parallel is 1"}},
		},
		"where nothing is asked for": {
			cluster: Cluster{Hosts: hostsOf(1.5, "a", "b")}, queues: []Queue{queueOf(func() domain.Sweep {
				s := sweepOf("a", 5)
				s.Resources = free
				return s
			}())},
			starts: []string{"a/r0 on a", "a/r1 on b", "a/r2 on a"},
			waits:  map[string][]string{"a": {"CPUs of the hosts, 3", "max_parallel"}},
		},
		"where nothing is asked for, of the hosts that will do": {
			cluster: Cluster{Hosts: hostsOf(2, "a", "b")}, queues: []Queue{queueOf(func() domain.Sweep {
				s := sweepOf("a", 5)
				s.Resources, s.Placement.Labels = free, map[string]string{"name": "b"}
				return s
			}())},
			starts: []string{"a/r0 on b", "a/r1 on b"}, waits: map[string][]string{"a": {"CPUs of the hosts, 2"}},
		},
		"packed": {
			cluster: Cluster{Hosts: hostsOf(3, "a", "b")}, queues: []Queue{queueOf(func() domain.Sweep {
				s := sweepOf("a", 4)
				s.Placement.Strategy = domain.Pack
				return s
			}())},
			starts: []string{"a/r0 on a", "a/r1 on a", "a/r2 on a", "a/r3 on b"},
		},
		"spread by a label, with those that are on": {
			cluster: Cluster{Hosts: hostsOf(4, "a", "b")}, queues: []Queue{queueOf(func() domain.Sweep {
				s := sweepOf("a", 5)
				s.Placement = domain.Placement{Strategy: domain.Pack, SpreadBy: "name"}
				return s
			}()).with(map[string]domain.Run{"r3": running("b", noon), "r4": running("b", noon)})},
			starts: []string{"a/r0 on a", "a/r1 on a", "a/r2 on a"},
		},
		// Runs that are already queued don't wait for a label that hosts have lost.
		"spread by a label that no host has": {
			cluster: small, queues: []Queue{queueOf(func() domain.Sweep {
				s := sweepOf("a", 2)
				s.Placement.SpreadBy = "zone"
				return s
			}())},
			starts: []string{"a/r0 on a", "a/r1 on a"},
		},
		"held": {
			cluster: small, queues: []Queue{
				func() Queue { q := queueOf(sweepOf("a", 3)); q.Held = "it is being changed"; return q }(),
				queueOf(sweepOf("b", 1)),
				func() Queue {
					q := queueOf(sweepOf("c", 1)).with(map[string]domain.Run{
						"r0": endedRun(domain.RunSucceeded, "a", noon),
					})
					q.Held = "it is being changed"
					return q
				}(),
			},
			starts: []string{"b/r0 on a"}, waits: map[string][]string{"a": {"it is being changed"}},
		},
		"what those hold that are held": {
			cluster: small, queues: []Queue{func() Queue {
				q := queueOf(sweepOf("a", 3)).with(map[string]domain.Run{
					"r0": running("a", noon), "r1": running("a", noon),
				})
				q.Held = "it is being changed"
				return q
			}(), queueOf(sweepOf("b", 1))},
			waits: map[string][]string{"a": {"it is being changed"}, "b": {"0 of 2 CPUs free"}},
		},
		"one whose member has yet to end": {
			cluster: small, queues: []Queue{func() Queue {
				q := queueOf(sweepOf("a", 3))
				q.Leaving = map[string]domain.Assignment{"r0": {Host: "a"}}
				return q
			}()},
			starts: []string{"a/r1 on a"}, waits: map[string][]string{"a": {"CPUs free"}},
		},
		"one whose member has ended and is still there": {
			cluster: small, queues: []Queue{func() Queue {
				q := queueOf(sweepOf("a", 1))
				q.Leaving = map[string]domain.Assignment{"r0": {}}
				return q
			}()},
			waits: map[string][]string{"a": {`run "r0" has to end`}},
		},
		// The members of both would be called a-b-c-0.
		"a name that is taken": {
			cluster: Cluster{Hosts: hostsOf(9, "a")}, queues: []Queue{queueOf(func() domain.Sweep {
				s := sweepOf("a", 1)
				s.Runs = map[string]map[string]string{"b-c": nil, "d": nil}
				return s
			}()), queueOf(func() domain.Sweep {
				s := sweepOf("a-b", 1)
				s.Runs = map[string]map[string]string{"c": nil, "e": nil}
				return s
			}())},
			starts: []string{"a/b-c on a", "a/d on a", "a-b/e on a"},
			waits:  map[string][]string{"a-b": {"a-b-c-0", `"a"`}},
		},
		"addresses": {
			cluster: Cluster{Hosts: hostsOf(9, "a"), Room: 2},
			queues:  []Queue{queueOf(sweepOf("a", 9)), queueOf(sweepOf("b", 9))},
			starts:  []string{"a/r0 on a", "a/r1 on a"},
			waits:   map[string][]string{"a": {"addresses for 2"}, "b": {`sweep "a" is ahead of it`}},
		},
		"closed hosts": {
			cluster: Cluster{Hosts: hostsOf(1, "a", "b"), Closed: map[string]string{"a": "host a is down"}},
			queues:  []Queue{queueOf(sweepOf("a", 2))},
			starts:  []string{"a/r0 on b"}, waits: map[string][]string{"a": {"host a is down"}},
		},
		"no hosts": {queues: []Queue{queueOf(sweepOf("a", 2))}, waits: map[string][]string{"a": {"no hosts"}}},
	})
}

// TestAdmitSomeAtATime checks that of many runs only some are started at a time, and that nobody behind them takes
// their places meanwhile.
func TestAdmitSomeAtATime(t *testing.T) {
	cluster := Cluster{Hosts: hostsOf(startedAtOnce+6, "a")}
	first, second := queueOf(sweepOf("a", 100)), aged(sweepOf("b", 100), 5, 0)
	got := Admit(cluster, []Queue{first, second}, noon)
	if len(got.Starts) != startedAtOnce || got.Starts[startedAtOnce-1].Sweep != "a" || !got.Next.Equal(noon) {
		t.Errorf("%d start, and next is at %s", len(got.Starts), got.Next)
	}
	says(t, "a", got.Waits["a"], "start first")
	says(t, "b", got.Waits["b"], `sweep "a" is ahead of it`)
	started := map[string]domain.Run{}
	for _, start := range got.Starts {
		started[start.Key] = running("a", noon)
	}
	got = Admit(cluster, []Queue{first.with(started), second}, noon)
	if len(got.Starts) != 6 || got.Starts[5].Key != "r69" || !got.Next.IsZero() {
		t.Errorf("then these start, and next is at %s: %v", got.Next, startTexts(got.Starts))
	}
}

func TestAdmitLater(t *testing.T) {
	waits := func(seconds float64) domain.Run {
		run := endedRun(domain.RunQueued, "a", at(-1))
		run.NotBefore = new(at(seconds))
		return run
	}
	delayed := sweepOf("a", 3)
	delayed.Retry.Delay = seconds(3600)
	cluster := Cluster{Hosts: hostsOf(2, "a")}
	run(t, map[string]testCase{
		"not due": {
			cluster: cluster,
			queues:  []Queue{queueOf(sweepOf("a", 2)).with(map[string]domain.Run{"r0": waits(9), "r1": waits(7)})},
			waits:   map[string][]string{"a": {`run "r0" is due at 2026-11-24 12:00:09 UTC`}}, next: at(7),
		},
		"due": {
			cluster: cluster,
			queues:  []Queue{queueOf(sweepOf("a", 2)).with(map[string]domain.Run{"r0": waits(0), "r1": waits(-7)})},
			starts:  []string{"a/r0 on a", "a/r1 on a"},
		},
		"others go first": {
			cluster: cluster, queues: []Queue{queueOf(sweepOf("a", 2)).with(map[string]domain.Run{"r0": waits(9)})},
			starts: []string{"a/r1 on a"}, waits: map[string][]string{"a": {`run "r0" is due`}}, next: at(9),
		},
		"the earliest of all sweeps": {
			cluster: cluster, queues: []Queue{
				queueOf(sweepOf("a", 1)).with(map[string]domain.Run{"r0": waits(9)}),
				queueOf(sweepOf("b", 1)).with(map[string]domain.Run{"r0": waits(8)}),
			},
			waits: map[string][]string{"a": {"due"}, "b": {"due"}}, next: at(8),
		},
		"it does not keep others": {
			cluster: cluster, queues: []Queue{
				queueOf(sweepOf("a", 1)).with(map[string]domain.Run{"r0": waits(9)}), queueOf(sweepOf("b", 2)),
			},
			starts: []string{"b/r0 on a", "b/r1 on a"}, waits: map[string][]string{"a": {"due"}}, next: at(9),
		},
		// The clock was set back by a day: no attempt waits for that.
		"further away than any": {
			cluster: cluster, queues: []Queue{
				queueOf(sweepOf("a", 2)).with(map[string]domain.Run{"r0": waits(86_400), "r1": waits(301)}),
			},
			starts: []string{"a/r0 on a", "a/r1 on a"},
		},
		"as far as there can be": {
			cluster: cluster, queues: []Queue{queueOf(sweepOf("a", 1)).with(map[string]domain.Run{"r0": waits(300)})},
			waits: map[string][]string{"a": {"due"}}, next: at(300),
		},
		// A host whose clock is ahead reports when a run ended. That does not mean that the clock was set back.
		"a long delay": {
			cluster: cluster, queues: []Queue{queueOf(delayed).with(map[string]domain.Run{"r0": func() domain.Run {
				run := waits(3600)
				run.FinishedAt = new(at(30))
				return run
			}(), "r1": waits(3601)})}, starts: []string{"a/r1 on a", "a/r2 on a"},
			waits: map[string][]string{"a": {`run "r0" is due`}}, next: at(3600),
		},
	})
}

// TestAdmitKeepsOthers has a sweep without room, and others behind it.
func TestAdmitKeepsOthers(t *testing.T) {
	devices := map[string][]domain.Device{"gpu1": a40("GPU-a"), "gpu2": a40("GPU-b")}
	pools := exclusive(devices)
	pools["q"] = domain.GPUPoolDocument{
		Spec: domain.GPUPool{Name: "q"}, Devices: map[string][]domain.Device{"gpu3": a40("GPU-c")},
	}
	pools["both"] = domain.GPUPoolDocument{
		Spec:    domain.GPUPool{Name: "both"},
		Devices: map[string][]domain.Device{"gpu2": a40("GPU-b"), "gpu3": a40("GPU-c")},
	}
	gpus := func(name, pool string, count int) domain.Sweep {
		s := onGPUs(sweepOf(name, 1), 0)
		s.GPUs = &domain.GPURequest{Pool: pool, Count: &count}
		return s
	}
	on := func(s domain.Sweep, hosts ...string) domain.Sweep {
		s.Placement.Hosts = hosts
		return s
	}
	cpus := func(name string, n float64) domain.Sweep {
		s := sweepOf(name, 1)
		s.Resources.CPUs = n
		return s
	}
	// holder returns a group with members in places such as "gpu1 GPU-a", which occupy some CPUs and devices of pool p.
	holder := func(n float64, places ...string) map[string]domain.GroupDocument {
		doc := domain.GroupDocument{
			Spec: domain.Group{Name: "g", Roles: map[string]domain.Role{}}, Assignments: map[string]domain.Assignment{},
		}
		for i, place := range places {
			role := domain.Role{Resources: domain.ResourceRequirements{CPUs: n}}
			at := domain.ParsePlace(place)
			if at.GPUs != "" {
				role.GPUs = &domain.GPURequest{Pool: "p"}
			}
			name := fmt.Sprintf("w%d", i)
			doc.Spec.Roles[name], doc.Assignments[domain.MemberName("g", name, 0)] = role, at
		}
		return map[string]domain.GroupDocument{"g": doc}
	}
	hosts := hostsOf(4, "gpu1", "gpu2", "gpu3")
	const before = `sweep "a" is ahead of it`
	full := holder(0, "gpu1 GPU-a", "gpu2 GPU-b")
	run(t, map[string]testCase{
		"of the same pool": {
			cluster: Cluster{Hosts: hosts, Pools: pools, Groups: holder(0, "gpu1 GPU-a")},
			queues: []Queue{
				queueOf(func() domain.Sweep { s := gpus("a", "p", 1); s.Runs["r1"] = nil; return s }()),
				queueOf(gpus("b", "p", 1)),
			},
			starts: []string{"a/r0 on gpu2 GPU-b"}, waits: map[string][]string{"a": {"GPU-a"}, "b": {before}},
		},
		"of no pool": {
			cluster: Cluster{Hosts: hosts, Pools: pools, Groups: full},
			queues:  []Queue{queueOf(gpus("a", "p", 1)), queueOf(cpus("b", 4))},
			starts:  []string{"b/r0 on gpu3"}, waits: map[string][]string{"a": {"held by"}},
		},
		"of another pool": {
			cluster: Cluster{Hosts: hosts, Pools: pools, Groups: full},
			queues:  []Queue{queueOf(gpus("a", "p", 1)), queueOf(gpus("b", "q", 1))},
			starts:  []string{"b/r0 on gpu3 GPU-c"}, waits: map[string][]string{"a": {"held by"}},
		},
		// The free device of the other pool is not one that it waits for, but a run of that pool might take the one
		// that it does.
		"of another pool with the same device": {
			cluster: Cluster{Hosts: hosts, Pools: pools, Groups: full},
			queues:  []Queue{queueOf(gpus("a", "p", 1)), queueOf(gpus("b", "both", 1))},
			waits:   map[string][]string{"a": {"held by"}, "b": {before}},
		},
		"of the same pool on other hosts": {
			cluster: Cluster{Hosts: hosts, Pools: pools, Groups: holder(0, "gpu1 GPU-a")},
			queues:  []Queue{queueOf(on(gpus("a", "p", 1), "gpu1")), queueOf(on(gpus("b", "p", 1), "gpu2"))},
			starts:  []string{"b/r0 on gpu2 GPU-b"}, waits: map[string][]string{"a": {"held by"}},
		},
		"processors": {
			cluster: Cluster{Hosts: hostsOf(4, "h"), Groups: holder(1, "h")},
			queues:  []Queue{queueOf(cpus("a", 4)), queueOf(cpus("b", 1))},
			waits:   map[string][]string{"a": {"3 of 4 CPUs free"}, "b": {before}},
		},
		"processors of other hosts": {
			cluster: Cluster{Hosts: hosts, Groups: holder(1, "gpu1")},
			queues:  []Queue{queueOf(on(cpus("a", 4), "gpu1")), queueOf(on(cpus("b", 4), "gpu2"))},
			starts:  []string{"b/r0 on gpu2"}, waits: map[string][]string{"a": {"CPUs free"}},
		},
		// Its devices are free on one host, and its CPUs on the other: runs without GPUs must not take the CPUs of the
		// first.
		"processors where there are devices": {
			cluster: Cluster{Hosts: hostsOf(4, "gpu1", "gpu2"), Pools: pools,
				Groups: func() map[string]domain.GroupDocument {
					groups := holder(0, "gpu1 GPU-a")
					doc := groups["g"]
					doc.Spec.Roles["x"] = domain.Role{Resources: domain.ResourceRequirements{CPUs: 2}}
					doc.Assignments["g-x-0"] = domain.Assignment{Host: "gpu2"}
					return groups
				}()},
			queues: []Queue{
				queueOf(func() domain.Sweep { s := gpus("a", "p", 1); s.Resources.CPUs = 3; return s }()),
				queueOf(cpus("b", 1)),
			},
			waits: map[string][]string{"a": nil, "b": {before}},
		},
		"one that can't have what it needs": {
			cluster: Cluster{Hosts: hosts, Pools: pools}, queues: []Queue{
				queueOf(cpus("a", 5)), queueOf(gpus("aa", "p", 2)), queueOf(gpus("ab", "gone", 1)),
				queueOf(gpus("b", "p", 1)),
			},
			starts: []string{"b/r0 on gpu1 GPU-a"},
			waits:  map[string][]string{"a": {"5 CPUs"}, "aa": {"2 GPUs"}, "ab": {`no GPU pool "gone"`}},
		},
		"one whose host is away": {
			cluster: Cluster{Hosts: hosts, Closed: map[string]string{"gpu1": "host gpu1 is down"}},
			queues:  []Queue{queueOf(on(cpus("a", 1), "gpu1")), queueOf(cpus("b", 4))},
			starts:  []string{"b/r0 on gpu2"}, waits: map[string][]string{"a": {"host gpu1 is down"}},
		},
		"one whose device is lost": {
			cluster: Cluster{
				Hosts: hosts, Pools: pools,
				Devices: map[string]placement.DeviceState{"GPU-c": {Lost: "fallen off the bus (XID 79)"}},
			},
			queues: []Queue{queueOf(gpus("a", "q", 1)), queueOf(gpus("b", "both", 1))},
			starts: []string{"b/r0 on gpu2 GPU-b"}, waits: map[string][]string{"a": {"XID 79"}},
		},
		"two before it": {
			cluster: Cluster{Hosts: hosts, Pools: pools, Groups: full},
			queues: []Queue{
				queueOf(gpus("a", "p", 1)), queueOf(on(cpus("aa", 4), "gpu1")), queueOf(on(cpus("b", 4), "gpu3")),
				queueOf(on(cpus("c", 1), "gpu1")),
			},
			starts: []string{"aa/r0 on gpu1", "b/r0 on gpu3"},
			waits:  map[string][]string{"a": {"held by"}, "c": {"0 of 4 CPUs free"}},
		},
	})
}

// TestAdmitSlots checks that a GPU fully divided into slots takes as many runs as in the paper: 37 on an A40,
// where the 38th died.
func TestAdmitSlots(t *testing.T) {
	cluster := Cluster{Hosts: hostsOf(8, "gpu1"), Pools: slots(1199, map[string][]domain.Device{"gpu1": a40("GPU-a")})}
	q := queueOf(onGPUs(sweepOf("lr", 50), 1199))
	got := Admit(cluster, []Queue{q}, noon)
	if len(got.Starts) != 37 {
		t.Errorf("%d start", len(got.Starts))
	}
	says(t, "the others wait", got.Waits["lr"], "Not enough GPUs", "0 of 37 slots free")
	if got.Measured || !got.Next.IsZero() {
		t.Errorf("next is at %s", got.Next)
	}
	started := map[string]domain.Run{}
	for _, start := range got.Starts {
		started[start.Key] = running("gpu1 GPU-a", noon)
	}
	if got = Admit(cluster, []Queue{q.with(started)}, noon); len(got.Starts) > 0 {
		t.Errorf("then these start: %v", startTexts(got.Starts))
	}
	started["r03"] = endedRun(domain.RunSucceeded, "gpu1 GPU-a", noon)
	got = Admit(cluster, []Queue{q.with(started)}, noon)
	if diff := cmp.Diff([]string{"lr/r37 on gpu1 GPU-a"}, startTexts(got.Starts)); diff != "" {
		t.Errorf("once one has ended (-want +got):\n%s", diff)
	}
}

func TestFits(t *testing.T) {
	pools := slots(1199, map[string][]domain.Device{"gpu1": a40("GPU-a")})
	cluster := Cluster{
		Hosts: hostsOf(4, "gpu1", "h"), Pools: pools, Closed: map[string]string{"gpu1": "down", "h": "down"},
		Devices:  map[string]placement.DeviceState{"GPU-a": {Lost: "gone"}},
		Reserved: map[string]domain.Resources{"gpu1": {CPUs: 4}, "h": {CPUs: 4}}, Room: 1,
	}
	measured := domain.Admission{FreeGPUMemory: true}
	for name, test := range map[string]struct {
		change func(s *domain.Sweep)
		path   string
		says   []string
	}{
		"it does":     {func(*domain.Sweep) {}, "", nil},
		"on the card": {func(s *domain.Sweep) { *s = onGPUs(*s, 37*1199) }, "", nil},
		"with what has to be free": {
			func(s *domain.Sweep) { *s = onGPUs(*s, 44_000); s.Admission = measured }, "", nil,
		},
		"with another reserve": {func(s *domain.Sweep) {
			*s = onGPUs(*s, 44_000)
			s.Admission = measured
			s.Admission.ReservePercent = new(4.0)
		}, "", nil},
		"too many processors": {
			func(s *domain.Sweep) { s.Resources.CPUs = 4.5 }, "resources.cpus", []string{"4.5 CPUs", "4 CPUs"},
		},
		"too much memory": {
			func(s *domain.Sweep) { s.Resources.MemoryMiB = 64_001 }, "resources.memory_mib",
			[]string{"64001 MiB", "64000 MiB"},
		},
		"no such label": {
			func(s *domain.Sweep) { s.Placement.Labels = map[string]string{"gpu": "h100"} }, "placement.labels",
			[]string{`gpu = "h100"`},
		},
		"spread by a label": {func(s *domain.Sweep) { s.Placement.SpreadBy = "name" }, "", nil},
		"by no such label": {
			func(s *domain.Sweep) { s.Placement.SpreadBy = "rack" }, "placement.spread_by",
			[]string{`label "rack"`, "are: name"},
		},
		"no such host": {
			func(s *domain.Sweep) { s.Placement.Hosts = []string{"h", "x"} }, "placement.hosts[1]",
			[]string{`no host "x"`},
		},
		"no such pool": {
			func(s *domain.Sweep) { s.GPUs = &domain.GPURequest{Pool: "q"} }, "gpus.pool",
			[]string{`no GPU pool "q"`, "p"},
		},
		"no card on the hosts": {
			func(s *domain.Sweep) { *s = onGPUs(*s, 1); s.Placement.Hosts = []string{"h"} }, "gpus.count",
			[]string{"hosts that it may use have 0", "gpu1"},
		},
		"too large for a card": {
			func(s *domain.Sweep) { *s = onGPUs(*s, 37*1199+1) }, "gpus.memory_mib", []string{"38 slots", "37 slots"},
		},
		"more cards than there are": {
			func(s *domain.Sweep) { *s = onGPUs(*s, 1); s.GPUs.Count = new(2) }, "gpus.count",
			[]string{"2 GPUs", "gpu1 has 1"},
		},
		"never as much free": {func(s *domain.Sweep) {
			*s = onGPUs(*s, 44_000)
			s.Admission = measured
			s.Admission.ReservePercent = new(5.0)
		},
			"gpus", []string{"46068 MiB", "46304"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := sweepOf("lr", 3)
			test.change(&s)
			problems := Fits(s, cluster)
			if test.path == "" {
				if len(problems) > 0 {
					t.Error(problems)
				}
				return
			}
			if len(problems) != 1 || problems[0].Path.String() != test.path {
				t.Fatalf("got %v, want a problem at %s", problems, test.path)
			}
			says(t, "detail", problems[0].Detail, test.says...)
		})
	}
	if problems := Fits(sweepOf("lr", 1), Cluster{}); len(problems) != 1 || problems[0].Path.String() != "cluster" {
		t.Errorf("without hosts: %v", problems)
	}
}
