package sweep

import (
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/placement"
)

// measuring returns a sweep of runs that need 1,199 MiB of a GPU, and start if that much is measured as free in
// addition to 3 %, which is 1,382.04 MiB of an A40.
func measuring(name string, n int) domain.Sweep {
	s := onGPUs(sweepOf(name, n), 1199)
	s.Admission.FreeGPUMemory = true
	return s
}

// cardsFree returns a cluster of two GPUs with slots, with this much measured as free.
func cardsFree(mib map[string]int64) Cluster {
	return Cluster{
		Hosts: hostsOf(64, "gpu1"), Pools: slots(1199, map[string][]domain.Device{"gpu1": a40("GPU-a", "GPU-b")}),
		FreeGPUMiB: mib,
	}
}

func TestAdmitByFreeGPUMemory(t *testing.T) {
	plenty := map[string]int64{"GPU-a": 40_000, "GPU-b": 40_000}
	settle := func(s domain.Sweep, n float64) domain.Sweep {
		s.Admission.Settle = seconds(n)
		return s
	}
	on := func(s domain.Sweep, runs map[string]domain.Run) []Queue { return []Queue{queueOf(s).with(runs)} }
	run(t, map[string]testCase{
		"one a card": {
			cluster: cardsFree(plenty), queues: []Queue{queueOf(measuring("a", 5))},
			starts: []string{"a/r0 on gpu1 GPU-a", "a/r1 on gpu1 GPU-b"},
			waits:  map[string][]string{"a": {"it has just been given to another run"}}, next: at(20), measured: true,
		},
		"all have a card": {
			cluster: cardsFree(plenty), queues: []Queue{queueOf(measuring("a", 2))},
			starts: []string{"a/r0 on gpu1 GPU-a", "a/r1 on gpu1 GPU-b"},
		},
		"just enough": {
			cluster: cardsFree(map[string]int64{"GPU-a": 2582, "GPU-b": 2581}),
			queues:  []Queue{queueOf(measuring("a", 2))}, starts: []string{"a/r0 on gpu1 GPU-a"},
			waits: map[string][]string{"a": {"2581 MiB of its memory are free, and a run needs 2582 with the reserve"}},
			next:  at(20), measured: true,
		},
		// Whoever uses it, only what is free counts.
		"a foreign process": {
			cluster: cardsFree(map[string]int64{"GPU-a": 0, "GPU-b": 100}), queues: []Queue{queueOf(measuring("a", 2))},
			waits: map[string][]string{"a": {"100 MiB of its memory are free", "needs 2582"}}, measured: true,
		},
		"without a reserve": {
			cluster: cardsFree(map[string]int64{"GPU-a": 1199, "GPU-b": 1198}),
			queues: []Queue{queueOf(func() domain.Sweep {
				s := measuring("a", 2)
				s.Admission.ReservePercent = new(0.0)
				return s
			}())},
			starts: []string{"a/r0 on gpu1 GPU-a"}, waits: map[string][]string{"a": {"a run needs 1199"}}, next: at(20),
			measured: true,
		},
		"not known": {
			cluster: cardsFree(map[string]int64{"GPU-b": 40_000}), queues: []Queue{queueOf(measuring("a", 2))},
			starts: []string{"a/r0 on gpu1 GPU-b"},
			waits:  map[string][]string{"a": {"its free memory is unknown"}}, next: at(20), measured: true,
		},
		"nothing is known": {
			cluster: cardsFree(nil), queues: []Queue{queueOf(measuring("a", 2))},
			waits: map[string][]string{"a": {"its free memory is unknown"}}, measured: true,
		},
		"settling": {
			cluster: cardsFree(plenty), queues: on(measuring("a", 5),
				map[string]domain.Run{"r0": running("gpu1 GPU-a", at(-7)), "r1": running("gpu1 GPU-b", at(-12))}),
			waits: map[string][]string{"a": {"less than 20s ago (admission.settle)"}}, next: at(8), measured: true,
		},
		"one has settled": {
			cluster: cardsFree(plenty), queues: on(measuring("a", 4),
				map[string]domain.Run{"r0": running("gpu1 GPU-a", at(-20)), "r1": running("gpu1 GPU-b", at(-19))}),
			starts: []string{"a/r2 on gpu1 GPU-a"}, waits: map[string][]string{"a": {"less than 20s ago"}}, next: at(1),
			measured: true,
		},
		"settling is of no interest where others have room": {
			cluster: cardsFree(plenty),
			queues:  on(measuring("a", 2), map[string]domain.Run{"r0": running("gpu1 GPU-a", at(-7))}),
			starts:  []string{"a/r1 on gpu1 GPU-b"},
		},
		"the last start counts": {
			cluster: cardsFree(map[string]int64{"GPU-a": 40_000}),
			queues: on(measuring("a", 4),
				map[string]domain.Run{"r0": running("gpu1 GPU-a", at(-3)), "r1": running("gpu1 GPU-a", at(-70))}),
			waits: map[string][]string{"a": {"less than 20s ago"}}, next: at(17), measured: true,
		},
		"one that has ended settles no more": {
			cluster: cardsFree(plenty), queues: on(measuring("a", 3),
				map[string]domain.Run{"r0": endedRun(domain.RunSucceeded, "gpu1 GPU-a", at(-1))}),
			starts: []string{"a/r1 on gpu1 GPU-a", "a/r2 on gpu1 GPU-b"},
		},
		"another time to settle": {
			cluster: cardsFree(plenty), queues: on(settle(measuring("a", 4), 60),
				map[string]domain.Run{"r0": running("gpu1 GPU-a", at(-25)), "r1": running("gpu1 GPU-b", at(-20))}),
			waits: map[string][]string{"a": {"less than 1m0s ago"}}, next: at(35), measured: true,
		},
		"none": {
			cluster: cardsFree(plenty),
			queues:  on(settle(measuring("a", 5), 0), map[string]domain.Run{"r0": running("gpu1 GPU-a", noon)}),
			starts:  []string{"a/r1 on gpu1 GPU-b", "a/r2 on gpu1 GPU-a"},
			waits:   map[string][]string{"a": {"it has just been given to another run"}}, measured: true,
		},
		// The measurement was before the start: two runs of one decision must not both count on it.
		"one a card of all sweeps": {
			cluster: cardsFree(plenty),
			queues:  []Queue{queueOf(settle(measuring("a", 2), 0)), queueOf(settle(measuring("b", 1), 0))},
			starts:  []string{"a/r0 on gpu1 GPU-a", "a/r1 on gpu1 GPU-b"},
			waits:   map[string][]string{"b": {"it has just been given to another run"}}, measured: true,
		},
		"one a card of all sweeps, which settle": {
			cluster: cardsFree(map[string]int64{"GPU-a": 40_000}),
			queues:  []Queue{queueOf(measuring("a", 1)), queueOf(settle(measuring("b", 1), 30))},
			starts:  []string{"a/r0 on gpu1 GPU-a"}, waits: map[string][]string{"b": {"less than 30s ago"}},
			next: at(30), measured: true,
		},
		"another sweep's start counts": {
			cluster: cardsFree(map[string]int64{"GPU-a": 40_000}), queues: []Queue{
				queueOf(onGPUs(sweepOf("a", 1), 1199)).with(map[string]domain.Run{"r0": running("gpu1 GPU-a", at(-5))}),
				queueOf(measuring("b", 1)),
			},
			waits: map[string][]string{"b": {"less than 20s ago"}}, next: at(15), measured: true,
		},
		"a start to come, by a clock put back a little": {
			cluster: cardsFree(map[string]int64{"GPU-a": 40_000}),
			queues:  on(measuring("a", 2), map[string]domain.Run{"r0": running("gpu1 GPU-a", at(5))}),
			waits:   map[string][]string{"a": {"less than 20s ago"}}, next: at(25), measured: true,
		},
		"a start to come, by a clock put back a lot": {
			cluster: cardsFree(map[string]int64{"GPU-a": 40_000}),
			queues:  on(measuring("a", 2), map[string]domain.Run{"r0": running("gpu1 GPU-a", at(3600))}),
			starts:  []string{"a/r1 on gpu1 GPU-a"},
		},
		"slots count, too": {
			cluster: func() Cluster {
				c := cardsFree(plenty)
				c.Pools = slots(40_000, map[string][]domain.Device{"gpu1": a40("GPU-a")})
				return c
			}(),
			queues: on(measuring("a", 2), map[string]domain.Run{"r0": running("gpu1 GPU-a", at(-60))}),
			waits:  map[string][]string{"a": {"0 of 1 slot free"}}, measured: true,
		},
		"devices that are closed anyway": {
			cluster: func() Cluster {
				c := cardsFree(plenty)
				c.Devices = map[string]placement.DeviceState{
					"GPU-a": {Closed: "its host is restarting"}, "GPU-b": {Lost: "fallen off the bus (XID 79)"},
				}
				return c
			}(),
			queues: []Queue{queueOf(measuring("a", 2))},
			waits:  map[string][]string{"a": {"its host is restarting", "XID 79"}}, measured: true,
		},
	})
}

// TestAdmitOneASettle checks that if memory is allocated late, a GPU fills up by one run per settle time, and the last
// one starts once the driver reports enough.
func TestAdmitOneASettle(t *testing.T) {
	cluster := cardsFree(map[string]int64{})
	q, now := queueOf(measuring("lr", 50)), noon
	for n := 0; ; {
		taken := int64(n) * 1199
		cluster.FreeGPUMiB["GPU-a"] = 46_068 - taken
		got := Admit(cluster, []Queue{q}, now)
		if len(got.Starts) > 1 {
			t.Fatalf("at once start %v", startTexts(got.Starts))
		}
		if len(got.Starts) == 0 {
			// 1,705 MiB are free, of which a run needs 1,199: the reserve keeps it out.
			if n != 37 || got.Next.After(now) {
				t.Errorf("%d have started, and next is at %s", n, got.Next)
			}
			return
		}
		if want := now.Add(20 * time.Second); !got.Next.Equal(want) {
			t.Fatalf("next is at %s, want %s", got.Next, want)
		}
		n++
		run := running("gpu1 GPU-a", now)
		q = q.with(map[string]domain.Run{got.Starts[0].Key: run})
		now = got.Next
	}
}

// TestAdmitAfterOutOfMemory has a GPU on which a run ran out of memory.
func TestAdmitAfterOutOfMemory(t *testing.T) {
	// The GPU has 37 slots, but only as many runs fit as were on it.
	one := Cluster{Hosts: hostsOf(64, "gpu1"), Pools: slots(1199, map[string][]domain.Device{"gpu1": a40("GPU-a")})}
	two := cardsFree(nil)
	const limit = "ran out of its memory beside 2 others"
	s := onGPUs(sweepOf("a", 6), 1199)
	runs := func(changes map[string]domain.Run) []Queue {
		all := map[string]domain.Run{
			"r1": running("gpu1 GPU-a", at(-60)), "r2": running("gpu1 GPU-a", at(-60)), "r0": ranOut(at(-5), 2),
		}
		maps.Copy(all, changes)
		return []Queue{queueOf(s).with(all)}
	}
	inPlace := func(place string, finished float64) domain.Run {
		return endedRun(domain.RunSucceeded, place, at(finished))
	}
	again := func(place string) domain.Run { // the one that ran out is active again
		run := running(place, at(-1))
		run.RanOut = ranOut(at(-5), 2).RanOut
		return run
	}
	three := []string{"a/r3 on gpu1 GPU-a", "a/r4 on gpu1 GPU-a", "a/r5 on gpu1 GPU-a"}
	run(t, map[string]testCase{
		"full": {cluster: one, queues: runs(nil), waits: map[string][]string{"a": {limit}}},
		"none is left": {
			cluster: one, queues: runs(map[string]domain.Run{"r1": {}, "r2": {}, "r3": inPlace("gpu1 GPU-a", -30)}),
			starts: []string{"a/r0 on gpu1 GPU-a"}, waits: map[string][]string{"a": {"just been given"}},
		},
		"another one has ended": {
			cluster: one, queues: runs(map[string]domain.Run{"r1": inPlace("gpu1 GPU-a", -4)}),
			starts: append([]string{"a/r0 on gpu1 GPU-a"}, three...),
		},
		"another one was lost": {
			cluster: one,
			queues:  runs(map[string]domain.Run{"r1": Lost(running("gpu1 GPU-a", at(-9)), "gone", at(-4))}),
			starts: []string{
				"a/r0 on gpu1 GPU-a", "a/r1 on gpu1 GPU-a", "a/r3 on gpu1 GPU-a", "a/r4 on gpu1 GPU-a",
				"a/r5 on gpu1 GPU-a",
			},
		},
		"one had ended before": {
			cluster: one, queues: runs(map[string]domain.Run{"r3": inPlace("gpu1 GPU-a", -6)}),
			waits: map[string][]string{"a": {limit}},
		},
		"one ended at the same time": {
			cluster: one, queues: runs(map[string]domain.Run{"r3": inPlace("gpu1 GPU-a", -5)}),
			waits: map[string][]string{"a": {limit}},
		},
		"one ended elsewhere": {
			cluster: one, queues: runs(map[string]domain.Run{"r3": inPlace("gpu2 GPU-x", -1)}),
			waits: map[string][]string{"a": {limit}},
		},
		"another ran out, too": {
			cluster: one, queues: runs(map[string]domain.Run{"r2": ranOut(at(-4), 1)}),
			waits: map[string][]string{"a": {"ran out of its memory beside 1 others"}},
		},
		"another ran out at the same time": {
			cluster: one, queues: runs(map[string]domain.Run{"r2": ranOut(at(-5), 1)}),
			waits: map[string][]string{"a": {"ran out of its memory beside 1 others"}},
		},
		"room for one, gently": {
			cluster: one,
			queues:  runs(map[string]domain.Run{"r1": {State: domain.RunQueued}, "r2": running("gpu1 GPU-a", at(-60))}),
			starts:  []string{"a/r0 on gpu1 GPU-a"}, waits: map[string][]string{"a": {"just been given"}},
		},
		"it is on again": {
			cluster: one, queues: runs(map[string]domain.Run{"r0": again("gpu1 GPU-a")}),
			waits: map[string][]string{"a": {limit}},
		},
		"it is on another card": {
			cluster: one, queues: runs(map[string]domain.Run{"r0": again("gpu2 GPU-x")}),
			waits: map[string][]string{"a": {limit}},
		},
		"it has succeeded there": {
			cluster: one, queues: runs(map[string]domain.Run{"r0": func() domain.Run {
				run := inPlace("gpu1 GPU-a", -1)
				run.RanOut = ranOut(at(-5), 2).RanOut
				return run
			}()}), starts: three,
		},
		// The other GPU takes it, and the limit of the first one stays. While any device in the pool is limited, the
		// other GPU gets one run at a time.
		"another card": {
			cluster: two, queues: runs(nil), starts: []string{"a/r0 on gpu1 GPU-b"},
			waits: map[string][]string{"a": {limit, "just been given"}},
		},
		"another card, once it is there": {
			cluster: two, queues: runs(map[string]domain.Run{"r0": again("gpu1 GPU-b")}),
			starts: []string{"a/r3 on gpu1 GPU-b"}, waits: map[string][]string{"a": {limit}},
		},
		"another sweep's run counts": {
			cluster: one, queues: append(runs(map[string]domain.Run{"r3": inPlace("gpu1 GPU-x", -9)}),
				queueOf(onGPUs(sweepOf("b", 1), 1199))),
			waits: map[string][]string{"a": {limit}, "b": {`sweep "a" is ahead of it`}},
		},
		"a sweep of no GPUs goes on": {
			cluster: one, queues: append(runs(nil), queueOf(sweepOf("b", 1))), starts: []string{"b/r0 on gpu1"},
			waits: map[string][]string{"a": {limit}},
		},
		"after another sweep has dropped its GPUs": {
			cluster: one, queues: []Queue{
				queueOf(sweepOf("a", 2)).with(map[string]domain.Run{"r0": func() domain.Run {
					run := running("gpu1 GPU-a", at(-60))
					run.Needs = &domain.RunNeeds{GPUs: s.GPUs}
					return run
				}(), "r1": endedRun(domain.RunSucceeded, "gpu1", at(-90))}),
				queueOf(onGPUs(sweepOf("b", 1), 1199)).with(map[string]domain.Run{"r0": ranOut(at(-5), 1)}),
			},
			waits: map[string][]string{"b": {"beside 1 others"}},
		},
	})
}

// TestAdmitSeveralDevices checks that a run that needs several devices waits for all of them.
func TestAdmitSeveralDevices(t *testing.T) {
	pair := func(name string) domain.Sweep {
		s := measuring(name, 3)
		s.GPUs.Count = new(2)
		return s
	}
	plenty := map[string]int64{"GPU-a": 40_000, "GPU-b": 40_000}
	run(t, map[string]testCase{
		"both are free": {
			cluster: cardsFree(plenty), queues: []Queue{queueOf(pair("a"))},
			starts: []string{"a/r0 on gpu1 GPU-a,GPU-b"},
			waits:  map[string][]string{"a": {"just been given"}}, next: at(20), measured: true,
		},
		"one is": {
			cluster: cardsFree(map[string]int64{"GPU-a": 40_000, "GPU-b": 900}),
			queues:  []Queue{queueOf(pair("a")), queueOf(measuring("b", 1))},
			waits:   map[string][]string{"a": {"900 MiB"}, "b": {`sweep "a" is ahead of it`}}, measured: true,
		},
		"it settles on both": {
			cluster: cardsFree(plenty), queues: []Queue{
				queueOf(pair("a")).with(map[string]domain.Run{
					"r0": running("gpu1 GPU-a,GPU-b", at(-6)), "r1": endedRun(domain.RunFailed, "", noon),
					"r2": endedRun(domain.RunFailed, "", noon),
				}),
				queueOf(measuring("b", 1)),
			},
			waits: map[string][]string{"b": {"less than 20s ago"}}, next: at(14), measured: true,
		},
	})
}

// TestAdmitByFreeMemory has runs that need 2,000 MiB of their host.
func TestAdmitByFreeMemory(t *testing.T) {
	sized := func(name string, n int) domain.Sweep {
		s := sweepOf(name, n)
		s.Resources = domain.ResourceRequirements{MemoryMiB: 2000}
		s.Admission.FreeMemory = true
		return s
	}
	cluster := func(mib map[string]int64, hosts ...string) Cluster {
		return Cluster{Hosts: hostsOf(64, hosts...), FreeMiB: mib}
	}
	grown := running("h1", at(-5))
	grown.Needs = &domain.RunNeeds{Resources: domain.ResourceRequirements{MemoryMiB: 500}}
	run(t, map[string]testCase{
		"as many as it is for": {
			cluster: cluster(map[string]int64{"h1": 5999}, "h1"), queues: []Queue{queueOf(sized("a", 5))},
			starts: []string{"a/r0 on h1", "a/r1 on h1"},
			waits:  map[string][]string{"a": {"Not enough memory"}}, measured: true,
		},
		"all": {
			cluster: cluster(map[string]int64{"h1": 6000}, "h1"), queues: []Queue{queueOf(sized("a", 3))},
			starts: []string{"a/r0 on h1", "a/r1 on h1", "a/r2 on h1"},
		},
		"too little": {
			cluster: cluster(map[string]int64{"h1": 1999}, "h1"), queues: []Queue{queueOf(sized("a", 3))},
			waits: map[string][]string{"a": {"host h1 has 1999 MiB", "needs 2000"}}, measured: true,
		},
		"not known": {
			cluster: cluster(map[string]int64{"h2": 2000}, "h1", "h2"), queues: []Queue{queueOf(sized("a", 2))},
			starts: []string{"a/r0 on h2"},
			waits:  map[string][]string{"a": {"the free memory of host h1 is unknown"}}, measured: true,
		},
		"others started first": {
			cluster: cluster(map[string]int64{"h1": 5999}, "h1"),
			queues:  []Queue{queueOf(sized("a", 1)), queueOf(sized("b", 2))},
			starts:  []string{"a/r0 on h1", "b/r0 on h1"},
			waits:   map[string][]string{"b": {"Not enough memory"}}, next: at(20), measured: true,
		},
		// What was started 5 s ago has not taken its memory yet, and what was started 30 s ago has.
		"those just started": {
			cluster: cluster(map[string]int64{"h1": 4500}, "h1"), queues: []Queue{
				queueOf(sized("a", 5)).with(map[string]domain.Run{"r0": grown, "r1": running("h1", at(-30))}),
			},
			starts: []string{"a/r2 on h1", "a/r3 on h1"}, waits: map[string][]string{"a": {"Not enough memory"}},
			next: at(15), measured: true,
		},
		"those just started leave too little": {
			cluster: cluster(map[string]int64{"h1": 3000}, "h1"), queues: []Queue{
				queueOf(sized("a", 5)).with(map[string]domain.Run{"r0": running("h1", at(-5))}),
			},
			waits: map[string][]string{"a": {"1000 MiB of memory free beyond", "needs 2000"}}, next: at(15),
			measured: true,
		},
		"a closed host stays so": {
			cluster: func() Cluster {
				c := cluster(map[string]int64{"h1": 9000}, "h1")
				c.Closed = map[string]string{"h1": "host h1 is drained"}
				return c
			}(), queues: []Queue{queueOf(sized("a", 1))}, waits: map[string][]string{"a": {"host h1 is drained"}},
			measured: true,
		},
		"others need not wait for it": {
			cluster: cluster(map[string]int64{"h1": 0}, "h1", "h2"), queues: []Queue{
				queueOf(func() domain.Sweep { s := sized("a", 1); s.Placement.Hosts = []string{"h1"}; return s }()),
				queueOf(func() domain.Sweep { s := sweepOf("b", 1); s.Placement.Hosts = []string{"h2"}; return s }()),
				queueOf(sweepOf("c", 1)),
			}, starts: []string{"b/r0 on h2"},
			waits: map[string][]string{"a": {"0 MiB"}, "c": {`sweep "a" is ahead of it`}}, measured: true,
		},
	})
}

// TestAdmitChangesNothing checks that the input is not changed, as it is the controller's.
func TestAdmitChangesNothing(t *testing.T) {
	testCase := func() (Cluster, []Queue) {
		c := cardsFree(map[string]int64{"GPU-a": 40_000, "GPU-b": 40_000})
		c.Devices, c.Closed, c.FreeMiB = map[string]placement.DeviceState{
			"GPU-b": {Busy: "python"},
		}, map[string]string{}, map[string]int64{"gpu1": 9000}
		c.Groups = map[string]domain.GroupDocument{
			"g": {Spec: domain.Group{Name: "g"}, Assignments: map[string]domain.Assignment{}},
		}
		a, b := measuring("a", 5), sweepOf("b", 5)
		b.Resources.MemoryMiB, b.Admission.FreeMemory = 1000, true
		q := queueOf(a).with(map[string]domain.Run{"r0": running("gpu1 GPU-a", at(-50)), "r1": ranOut(at(-5), 0)})
		q.Leaving = map[string]domain.Assignment{"r2": {Host: "gpu1", GPUs: "GPU-b"}}
		return c, []Queue{queueOf(b), q}
	}
	cluster, queues := testCase()
	if got := Admit(cluster, queues, noon); len(got.Starts) == 0 {
		t.Fatalf("nothing starts: %v", got.Waits)
	}
	sameCluster, sameQueues := testCase()
	if diff := cmp.Diff(sameCluster, cluster) + cmp.Diff(sameQueues, queues); diff != "" {
		t.Errorf("it has changed (-want +got):\n%s", diff)
	}
	if !slices.EqualFunc(queues, sameQueues, func(a, b Queue) bool { return a.Spec.Name == b.Spec.Name }) {
		t.Error("the order has changed")
	}
}
