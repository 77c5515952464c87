package meter

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/trainyard/terraform-provider-trainyard/internal/autoscale"
	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
)

// uses returns the usage of a member as of this long before noon: CPUs, memory and GPU memory.
func uses(cpus, memory, gpuMemory float64, age time.Duration) engine.MemberUsage {
	return engine.MemberUsage{
		CPUs: domain.Instant(&cpus), MemoryMiB: domain.Instant(&memory), GPUMemoryMiB: domain.Instant(&gpuMemory),
		SampledAt: noon.Add(-age),
	}
}

// in returns an observed member in another state.
func in(state domain.State, o domain.Observed) domain.Observed {
	o.State = state
	return o
}

func TestAgents(t *testing.T) {
	const second = time.Second
	young := running("worker", 1)
	young.StartedAt = new(noon.Add(-20 * second))
	old := running("worker", 1)
	old.Run = 1
	two := jobOf(running("worker", 0), running("worker", 1), running("ps", 0))
	busy := engine.Usage{Members: map[string]engine.MemberUsage{
		"job-worker-0": uses(1, 100, 10, second), "job-worker-1": uses(3, 300, 30, 3*second),
		"job-ps-0": uses(50, 5000, 500, time.Hour),
	}}
	statistics := engine.Usage{Members: map[string]engine.MemberUsage{
		"job-worker-0": {CPUs: domain.MeasureOf([]float64{1, 2, 6}), SampledAt: noon},
		"job-worker-1": {CPUs: domain.MeasureOf([]float64{0, 0, 0}), SampledAt: noon},
	}}
	lost := engine.Usage{Members: map[string]engine.MemberUsage{
		"job-worker-0": uses(1, 100, 10, second), "job-worker-1": {SampledAt: noon, Reason: "host gpu2 is down"},
	}}
	past := engine.Usage{Members: map[string]engine.MemberUsage{
		"job-worker-0": uses(1, 1, 1, 0), "job-worker-1": {CPUs: domain.Measure{Mean: new(9.0)}, SampledAt: noon},
	}}
	gpus := two
	gpus.Groups = map[string]domain.GroupDocument{"job": two.Groups["job"]}
	withGPUs := gpus.Groups["job"]
	withGPUs.Assignments = map[string]domain.Assignment{
		"job-worker-0": {GPUs: "GPU-1,GPU-2"}, "job-worker-1": {GPUs: "GPU-3"},
	}
	gpus.Groups["job"] = withGPUs
	working := engine.Usage{GPUs: map[string]engine.GPUUsage{
		"GPU-1": {
			Utilisation: domain.Instant(new(100.0)), MemoryMiB: domain.Instant(new(500.0)), TotalMemoryMiB: 1000,
			SampledAt: noon.Add(-2 * second),
		},
		"GPU-2": {
			Utilisation: domain.Instant(new(0.0)), MemoryMiB: domain.Instant(new(0.0)), TotalMemoryMiB: 3000,
			SampledAt: noon.Add(-5 * second),
		},
		"GPU-3": {
			Utilisation: domain.Instant(new(30.0)), MemoryMiB: domain.Instant(new(1000.0)), TotalMemoryMiB: 1000,
			SampledAt: noon,
		},
	}}
	broken := engine.Usage{GPUs: map[string]engine.GPUUsage{
		"GPU-1": working.GPUs["GPU-1"], "GPU-2": {Reason: "fallen off the bus (XID 79)"},
		"GPU-3": working.GPUs["GPU-3"],
	}}
	absent := jobOf(running("worker", 0), running("worker", 3))
	document := absent.Groups["job"]
	document.Absent = map[string][]int{"worker": {1, 2}}
	absent.Groups["job"] = document
	leaving := jobOf(running("worker", 0), running("worker", 1))
	leaving.Groups["job"].Counts["worker"] = 1

	for name, test := range map[string]struct {
		observation Observation
		usage       engine.Usage
		measure     domain.AgentMeasure
		of          domain.AgentOf
		aggregation domain.Aggregation
		want        autoscale.Measurement
	}{
		"processors": {two, busy, domain.AgentCPUs, "", "", autoscale.Measurement{
			Value: 2, At: noon.Add(-3 * second), Members: map[string]float64{"job-worker-0": 1, "job-worker-1": 3},
		}},
		"processors of all": {
			two, busy, domain.AgentCPUs, domain.AgentTotal, "",
			autoscale.Measurement{Value: 4, At: noon.Add(-3 * second)},
		},
		"their part of the request": {two, busy, domain.AgentCPUPercent, domain.AgentMember, "", autoscale.Measurement{
			Value: 50, At: noon.Add(-3 * second), Members: map[string]float64{"job-worker-0": 25, "job-worker-1": 75},
		}},
		"memory of all": {
			two, busy, domain.AgentMemoryMiB, domain.AgentTotal, "",
			autoscale.Measurement{Value: 400, At: noon.Add(-3 * second)},
		},
		"its part of the request": {two, busy, domain.AgentMemoryPercent, "", "", autoscale.Measurement{
			Value: 100 * 200.0 / 1024, At: noon.Add(-3 * second),
			Members: map[string]float64{"job-worker-0": 100 * 100.0 / 1024, "job-worker-1": 100 * 300.0 / 1024},
		}},
		"memory of GPUs": {
			two, busy, domain.AgentGPUMemoryMiB, domain.AgentTotal, "",
			autoscale.Measurement{Value: 40, At: noon.Add(-3 * second)},
		},
		"GPUs": {gpus, working, domain.AgentGPUPercent, "", "", autoscale.Measurement{
			Value: 40, At: noon.Add(-5 * second), Members: map[string]float64{"job-worker-0": 50, "job-worker-1": 30},
		}},
		"the memory of GPUs": {gpus, working, domain.AgentGPUMemoryPercent, "", "", autoscale.Measurement{
			Value: 56.25, At: noon.Add(-5 * second),
			Members: map[string]float64{"job-worker-0": 12.5, "job-worker-1": 100},
		}},
		"a GPU that is broken": {gpus, broken, domain.AgentGPUPercent, "", "", autoscale.Measurement{
			Value: 30, At: noon, Members: map[string]float64{"job-worker-1": 30}, Missing: []string{"job-worker-0"},
		}},
		"a GPU that is broken, of all": {gpus, broken, domain.AgentGPUPercent, domain.AgentTotal, "",
			autoscale.Measurement{
				Why: "unknown for 1 of 2 members, such as job-worker-0: GPU-2: fallen off the bus (XID 79)",
			}},
		"no GPUs": {two, working, domain.AgentGPUPercent, "", "", autoscale.Measurement{
			Why: "unknown for 2 of 2 members, such as job-worker-0: role worker has no GPUs from a pool",
		}},
		"GPUs no agent reports": {
			gpus, busy, domain.AgentGPUMemoryPercent, "", "",
			autoscale.Measurement{Why: "unknown for 2 of 2 members, such as job-worker-0: GPU-1: no agent reports it"},
		},
		"the mean, without a word": {
			two, statistics, domain.AgentCPUs, domain.AgentTotal, "", autoscale.Measurement{Value: 3, At: noon},
		},
		"the largest": {
			two, statistics, domain.AgentCPUs, domain.AgentTotal, domain.AggregateMax,
			autoscale.Measurement{Value: 6, At: noon},
		},
		"the 95th percentile": {
			two, statistics, domain.AgentCPUs, domain.AgentTotal, domain.AggregateP95,
			autoscale.Measurement{Value: 6, At: noon},
		},
		"the last": {
			two, statistics, domain.AgentCPUs, domain.AgentTotal, domain.AggregateLast,
			autoscale.Measurement{Value: 6, At: noon},
		},
		"one on a lost host": {two, lost, domain.AgentCPUs, "", "", autoscale.Measurement{
			Value: 1, At: noon.Add(-second), Members: map[string]float64{"job-worker-0": 1},
			Missing: []string{"job-worker-1"},
		}},
		"one on a lost host, of all": {
			two, lost, domain.AgentCPUs, domain.AgentTotal, "",
			autoscale.Measurement{Why: "unknown for 1 of 2 members, such as job-worker-1: host gpu2 is down"},
		},
		"all on lost hosts": {
			two, engine.Usage{}, domain.AgentCPUs, "", "",
			autoscale.Measurement{
				Why: "unknown for 2 of 2 members, such as job-worker-0: its agent does not report it",
			},
		},
		"known no more": {two, past, domain.AgentCPUs, "", "", autoscale.Measurement{
			Value: 1, At: noon, Members: map[string]float64{"job-worker-0": 1}, Missing: []string{"job-worker-1"},
		}},
		"one that starts": {jobOf(running("worker", 0), young), busy, domain.AgentCPUs, "", "", autoscale.Measurement{
			Value: 1, At: noon.Add(-second), Members: map[string]float64{"job-worker-0": 1, "job-worker-1": 3},
			Unready: []string{"job-worker-1"}, ReadyAfter: 30 * second,
		}},
		"one that starts, of all": {
			jobOf(running("worker", 0), young), busy, domain.AgentCPUs, domain.AgentTotal, "",
			autoscale.Measurement{Value: 4, At: noon.Add(-3 * second)},
		},
		"the memory of one that starts": {jobOf(running("worker", 0), young), busy, domain.AgentMemoryMiB, "", "",
			autoscale.Measurement{
				Value: 200, At: noon.Add(-3 * second),
				Members: map[string]float64{"job-worker-0": 100, "job-worker-1": 300},
			}},
		"all that start": {jobOf(in(domain.StatePending, running("worker", 0)), young), busy, domain.AgentCPUPercent,
			"", "", autoscale.Measurement{
				Value: 75, At: noon.Add(-3 * second), Members: map[string]float64{"job-worker-1": 75},
				Unready: []string{"job-worker-0", "job-worker-1"}, ReadyAfter: 30 * second,
			}},
		"those that wait": {jobOf(running("worker", 0), in(domain.StatePending, running("worker", 1)),
			in(domain.StateRestarting, running("worker", 2))), busy, domain.AgentCPUs, "", "", autoscale.Measurement{
			Value: 1, At: noon.Add(-second), Members: map[string]float64{"job-worker-0": 1},
			Unready: []string{"job-worker-1", "job-worker-2"},
		}},
		"those that have ended": {jobOf(running("worker", 0), in(domain.StateFailed, running("worker", 1)),
			in(domain.StateCompleted, running("worker", 2))), busy, domain.AgentCPUs, "", "", autoscale.Measurement{
			Value: 1, At: noon.Add(-second), Members: map[string]float64{"job-worker-0": 1},
		}},
		"one of an earlier run": {jobOf(running("worker", 0),
			old), busy, domain.AgentCPUs, "", "", autoscale.Measurement{
			Value: 1,
			At:    noon.Add(-second), Members: map[string]float64{"job-worker-0": 1}, Unready: []string{"job-worker-1"},
		}},
		"indexes that are left out": {absent, engine.Usage{
			Members: map[string]engine.MemberUsage{"job-worker-0": uses(1, 1, 1, 0), "job-worker-3": uses(5, 1, 1, 0)},
		}, domain.AgentCPUs, "", "", autoscale.Measurement{
			Value: 3, At: noon, Members: map[string]float64{"job-worker-0": 1, "job-worker-3": 5},
		}},
		"one that leaves": {
			leaving, busy, domain.AgentCPUs, "", "",
			autoscale.Measurement{Value: 1, At: noon.Add(-second), Members: map[string]float64{"job-worker-0": 1}},
		},
		"none that runs": {
			jobOf(in(domain.StatePending, running("worker", 0))), busy, domain.AgentCPUs, "", "",
			autoscale.Measurement{Why: "no member of role worker is running"},
		},
		"none at all": {
			jobOf(), busy, domain.AgentCPUs, domain.AgentTotal, "",
			autoscale.Measurement{Why: "no member of role worker is running"},
		},
		"no group": {
			Observation{}, busy, domain.AgentCPUs, "", "", autoscale.Measurement{Why: `there is no group "job"`},
		},
		"no role": {
			Observation{Groups: map[string]domain.GroupDocument{"job": {}}}, busy, domain.AgentCPUs, "", "",
			autoscale.Measurement{Why: `group "job" has no role "worker"`},
		},
		"an unknown measure": {
			two, busy, "heat", "", "",
			autoscale.Measurement{
				Why: `unknown for 2 of 2 members, such as job-worker-0: agents do not measure "heat"`,
			},
		},
		"no request of memory": {withoutRequests(two), busy, domain.AgentMemoryPercent, "", "", autoscale.Measurement{
			Why: "unknown for 2 of 2 members, such as job-worker-0: role worker requests no memory_mib to compute a percentage of: set resources.memory_mib",
		}},
		"no request of processors": {withoutRequests(two), busy, domain.AgentCPUPercent, domain.AgentTotal, "",
			autoscale.Measurement{
				Why: "unknown for 2 of 2 members, such as job-worker-0: role worker requests no cpus to compute a percentage of: set resources.cpus",
			}},
	} {
		t.Run(name, func(t *testing.T) {
			got := read(t, patient(reports(test.usage)), test.observation, Question{
				Source:      domain.ScalingSource{Agent: &domain.AgentSource{Measure: test.measure, Of: test.of}},
				Aggregation: test.aggregation,
			})
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("the measurement differs (-want +got):\n%s", diff)
			}
		})
	}
}

// A member's CPU usage counts once it has run for the window, or for as long as the metric says.
func TestReadyAfter(t *testing.T) {
	young := running("worker", 0)
	young.StartedAt = new(noon.Add(-17 * time.Second))
	e := reports(engine.Usage{Members: map[string]engine.MemberUsage{"job-worker-0": uses(1, 1, 1, 0)}})
	lasts := func(d time.Duration) *domain.Duration { return new(domain.Duration(d)) }
	for name, test := range map[string]struct {
		window, readyAfter *domain.Duration
		ready              bool
	}{
		"the usual window":                {nil, nil, false},
		"a short window":                  {lasts(5 * time.Second), nil, true},
		"a long window":                   {lasts(time.Minute), nil, false},
		"sooner than a long window":       {lasts(time.Minute), lasts(10 * time.Second), true},
		"at once":                         {nil, lasts(0), true},
		"later than after a short window": {lasts(5 * time.Second), lasts(20 * time.Second), false},
	} {
		got := read(t, patient(e), jobOf(young), Question{
			Source: domain.ScalingSource{Agent: &domain.AgentSource{Measure: domain.AgentCPUs}}, Window: test.window,
			ReadyAfter: test.readyAfter,
		})
		if ready := len(got.Unready) == 0; ready != test.ready || ready != (got.ReadyAfter == 0) {
			t.Errorf("%s: it is ready: %t, want %t: %+v", name, ready, test.ready, got)
		}
	}
}

// withoutRequests returns the observation with roles that request nothing.
func withoutRequests(observation Observation) Observation {
	document := observation.Groups["job"]
	document.Spec.Roles = nil
	return Observation{Groups: map[string]domain.GroupDocument{"job": document}, Members: observation.Members}
}

// autoscale handles a measurement as Kubernetes would: a starting member dampens scaling out, and
// a missing one scaling in.
func TestTargetOfAgents(t *testing.T) {
	young := running("worker", 1)
	young.StartedAt = new(noon)
	policy := domain.AutoscalingPolicy{Group: "job", Role: "worker", Min: 1, Max: 10,
		Metrics: map[string]domain.ScalingMetric{
			"cpu": {Algorithm: domain.ScalingAlgorithm{Target: &domain.TargetAlgorithm{Value: 50}}},
		}, ScaleIn: domain.ScalingBehaviour{Stabilisation: new(domain.Duration)}}
	for name, test := range map[string]struct {
		observation Observation
		cpus        map[string]float64
		want        int
	}{
		"both at work": {
			jobOf(running("worker", 0), running("worker", 1)), map[string]float64{"job-worker-0": 4, "job-worker-1": 4},
			4,
		},
		"one that starts": {
			jobOf(running("worker", 0), young), map[string]float64{"job-worker-0": 4, "job-worker-1": 4}, 2,
		},
		"one that is missing": {
			jobOf(running("worker", 0), running("worker", 1)), map[string]float64{"job-worker-0": 1}, 2,
		},
		"both idle": {
			jobOf(running("worker", 0), running("worker", 1)), map[string]float64{"job-worker-0": 1, "job-worker-1": 1},
			1,
		},
	} {
		t.Run(name, func(t *testing.T) {
			usage := engine.Usage{Members: map[string]engine.MemberUsage{}}
			for member, cpus := range test.cpus {
				usage.Members[member] = uses(cpus, 0, 0, 0)
			}
			a, err := autoscale.New(policy)
			if err != nil {
				t.Fatal(err)
			}
			got := read(t, patient(reports(usage)), test.observation,
				Question{Source: domain.ScalingSource{Agent: &domain.AgentSource{Measure: domain.AgentCPUPercent}}})
			// Without an earlier decision, the present count would count as the first proposal.
			state := autoscale.State{Since: noon.Add(-time.Hour)}
			d := a.Decide(&state,
				autoscale.Seen{Now: noon, Count: 2, Ready: 2, Metrics: map[string]autoscale.Measurement{"cpu": got}})
			if d.To != test.want {
				t.Errorf("%d members, want %d: %s", d.To, test.want, d.Why())
			}
		})
	}
}
