package telemetry

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
)

// TestUsageOfAMoment: if a report is about a moment rather than the requested window, everything measured has the
// reason; and what was not measured at all, why not.
func TestUsageOfAMoment(t *testing.T) {
	const brief, trouble = "of a moment", "fallen off the bus"
	known := domain.Instant(new(1.0))
	answer := Answer{Brief: brief, Report: Report{
		Host: HostReport{
			CPUs: known, MemoryMiB: known, Load: known, DiskMiB: known, ReceivedBps: known, SentBps: known,
		},
		Devices: map[string]DeviceReport{
			"GPU-1": {Utilisation: known, MemoryMiB: known, TemperatureC: known, PowerW: known},
		},
		Instances: map[string]InstanceReport{"mark": {CPUs: known, MemoryMiB: known, GPUMemoryMiB: known}},
	}}
	answer.GPUs.GPUs = []domain.GPU{
		{Device: domain.Device{UUID: "GPU-1"}}, {Device: domain.Device{UUID: "GPU-2"}, Trouble: trouble},
	}
	running := Running{
		Observed: []domain.Observed{
			{Name: "runs", Host: "local", Instance: "mark"},
			{Name: "ended", Host: "local", State: domain.StateCompleted},
		},
		Noun: "process",
	}
	usage := Usage(map[string]Answer{"local": answer}, running)
	for what, reasons := range map[string][2]string{
		"the host":            {usage.Hosts["local"].Reason, brief},
		"a GPU":               {usage.GPUs["GPU-1"].Reason, brief},
		"a GPU in trouble":    {usage.GPUs["GPU-2"].Reason, trouble},
		"a member":            {usage.Members["runs"].Reason, brief},
		"a member that ended": {usage.Members["ended"].Reason, "no process: the member is completed"},
	} {
		if reasons[0] != reasons[1] {
			t.Errorf("of %s it is said: %q, want %q", what, reasons[0], reasons[1])
		}
	}
}

// TestUsageOfTraffic: a member's traffic is as its agent reports it, or unknown with the agent's reason; earlier agents
// give none.
func TestUsageOfTraffic(t *testing.T) {
	earlier, err := ReadReport([]byte(
		`{"instances": {"mark": {"cpus": {"last": 1}, "memory_mib": {"last": 2}, "gpu_memory_mib": {"last": 0}}}, "samples": 1}`,
	))
	if err != nil {
		t.Fatal(err)
	}
	known := domain.Instant(new(3.0))
	for name, test := range map[string]struct {
		report   InstanceReport
		received *float64
		why      string
	}{
		"known": {
			InstanceReport{ReceivedBps: known, SentBps: known, ReceivedBytes: new(7.0), SentBytes: new(7.0)}, new(3.0),
			"",
		},
		"counted from now on": {
			InstanceReport{CPUs: known, MemoryMiB: known, ReceivedBytes: new(7.0), SentBytes: new(7.0)}, nil,
			"its network traffic was unknown at the last sample",
		},
		"not known": {InstanceReport{TrafficUnknown: "not counted"}, nil, "not counted"},
		"an earlier agent": {
			earlier.Instances["mark"], nil,
			"its agent is an earlier version and does not report it: apply the cluster again",
		},
	} {
		t.Run(name, func(t *testing.T) {
			answer := Answer{Report: Report{Instances: map[string]InstanceReport{"mark": test.report}}}
			got := Usage(map[string]Answer{"local": answer},
				Running{Observed: []domain.Observed{{Name: "runs", Host: "local", Instance: "mark"}}}).Members["runs"]
			if diff := cmp.Diff(test.received, got.ReceivedBps.Last); diff != "" || got.WhyNoTraffic() != test.why {
				t.Errorf("it is not known as %q, want %q; -want +got:\n%s", got.WhyNoTraffic(), test.why, diff)
			}
		})
	}
}

// TestUnmeasured: a running member missing from its agent's report is worth another query; one that no agent could know
// is not.
func TestUnmeasured(t *testing.T) {
	answer := Answer{Report: Report{Instances: map[string]InstanceReport{"mark": {}}}}
	withGPU := func(uuid string) Answer {
		a := answer
		a.GPUs.GPUs, a.Devices = []domain.GPU{{Device: domain.Device{UUID: uuid}}}, map[string]DeviceReport{"GPU-1": {}}
		return a
	}
	for name, test := range map[string]struct {
		instance string
		answers  map[string]Answer
		want     bool
	}{
		"it is reported":            {"mark", map[string]Answer{"a": answer}, false},
		"it is not":                 {"another", map[string]Answer{"a": answer}, true},
		"another host's agent does": {"mark", map[string]Answer{"a": {}, "b": answer}, true},
		"it does not run":           {"", map[string]Answer{"a": answer}, false},
		"its agent did not answer":  {"mark", map[string]Answer{"a": {Why: "no agent"}, "b": answer}, false},
		"a GPU is reported":         {"mark", map[string]Answer{"a": withGPU("GPU-1")}, false},
		"a GPU is not":              {"mark", map[string]Answer{"a": answer, "b": withGPU("GPU-2")}, true},
		"its host has none":         {"mark", map[string]Answer{"b": answer}, false},
	} {
		t.Run(name, func(t *testing.T) {
			running := Running{Observed: []domain.Observed{{Name: "runs", Host: "a", Instance: test.instance}}}
			if got := running.Unmeasured(test.answers); got != test.want {
				t.Errorf("it is %v", got)
			}
		})
	}
}
