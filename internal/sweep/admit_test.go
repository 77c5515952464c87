package sweep

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
)

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
			starts: []string{"a/r0 on a", "a/r1 on a"},
			waits:  map[string][]string{"a": {"max_parallel is 2, and 2 are running"}},
		},
		"max_parallel counts those that are on": {
			cluster: Cluster{Hosts: hostsOf(9, "a")},
			queues:  []Queue{queueOf(atMost(2, sweepOf("a", 9))).with(map[string]domain.Run{"r5": running("a", noon)})},
			starts:  []string{"a/r0 on a"}, waits: map[string][]string{"a": {"max_parallel is 2, and 2 are running"}},
		},
		"max_parallel was lowered": {
			cluster: Cluster{Hosts: hostsOf(9, "a")},
			queues: []Queue{queueOf(atMost(1, sweepOf("a", 9))).with(map[string]domain.Run{
				"r5": running("a", noon), "r6": running("a", noon),
			})},
			waits: map[string][]string{"a": {"max_parallel is 1, and 2 are running"}},
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
