package utilisation

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
	"github.com/trainyard/terraform-provider-trainyard/internal/provider/resourcekit"
)

// Unknown usage has no value, time or age, and a clock that is ahead yields no negative age.
func TestFlattenMemberUsage(t *testing.T) {
	now := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	cpus := domain.Measure{Last: new(1.0), Mean: new(2.0), Max: new(4.0), P95: new(3.0)}
	for name, test := range map[string]struct {
		usage     engine.MemberUsage
		sampledAt string
		age       *float64
	}{
		"sampled before": {
			engine.MemberUsage{CPUs: cpus, SampledAt: now.Add(-1500 * time.Millisecond)}, "2026-11-22T11:59:58Z",
			new(1.5),
		},
		"by a clock that is fast": {
			engine.MemberUsage{CPUs: cpus, SampledAt: now.Add(time.Second)}, "2026-11-22T12:00:01Z", new(0.0),
		},
		"not known":     {engine.MemberUsage{SampledAt: now, Reason: "no agent"}, "", nil},
		"never sampled": {engine.MemberUsage{CPUs: cpus}, "", nil},
	} {
		t.Run(name, func(t *testing.T) {
			got := flattenMemberUsage(test.usage, now)
			want := [4]*float64{test.usage.CPUs.Last, test.usage.CPUs.Mean, test.usage.CPUs.Max, test.usage.CPUs.P95}
			if diff := cmp.Diff(want, [4]*float64{
				got.CPUsUsed.ValueFloat64Pointer(), got.Mean.CPUsUsed.ValueFloat64Pointer(),
				got.Max.CPUsUsed.ValueFloat64Pointer(), got.P95.CPUsUsed.ValueFloat64Pointer(),
			}); diff != "" {
				t.Errorf("last, mean, max, p95 (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(test.age, got.AgeSeconds.ValueFloat64Pointer()); diff != "" ||
				got.SampledAt.ValueString() != test.sampledAt {
				t.Errorf("sampled at %s, want %q; its age (-want +got):\n%s", got.SampledAt, test.sampledAt, diff)
			}
			if want := test.usage.WhyNoTraffic(); resourcekit.Value(got.TrafficReason) != want || want == "" {
				t.Errorf("the reason of traffic is %v, want %q", got.TrafficReason, want)
			}
			if resourcekit.Value(got.Reason) != test.usage.Reason {
				t.Errorf("the reason is %v, want %q", got.Reason, test.usage.Reason)
			}
		})
	}
}

// Received and sent bytes are shown if known.
func TestFlattenTraffic(t *testing.T) {
	measure := func(last float64) domain.Measure {
		return domain.Measure{Last: &last, Mean: new(last + 1), Max: new(last + 2), P95: new(last + 3)}
	}
	got := flattenMemberUsage(engine.MemberUsage{ReceivedBps: measure(10), SentBps: measure(20), Reason: "no driver"},
		time.Now())
	shown := [8]float64{
		got.ReceivedBps.ValueFloat64(), got.Mean.ReceivedBps.ValueFloat64(), got.Max.ReceivedBps.ValueFloat64(),
		got.P95.ReceivedBps.ValueFloat64(),
		got.SentBps.ValueFloat64(), got.Mean.SentBps.ValueFloat64(), got.Max.SentBps.ValueFloat64(),
		got.P95.SentBps.ValueFloat64(),
	}
	if want := [8]float64{10, 11, 12, 13, 20, 21, 22, 23}; shown != want || got.TrafficReason != nil {
		t.Errorf("shown is %v, want %v; the reason is %v", shown, want, resourcekit.Value(got.TrafficReason))
	}
}

// A role or group without members is listed, with nothing known about it.
func TestFlattenUsageWithoutMembers(t *testing.T) {
	var got Model
	got.flatten(engine.Usage{
		Members: map[string]engine.MemberUsage{"job-ps-0": {Group: "job", Role: "ps", Reason: "no agent"}},
		Roles:   map[string][]string{"job": {"ps", "worker"}, "farm": {"worker"}},
	}, time.Now())
	reasons := map[string]string{}
	for name, group := range got.Groups {
		reasons[name] = resourcekit.Value(group.Reason)
		for role, u := range group.Roles {
			reasons[name+"/"+role] = resourcekit.Value(u.Reason)
			if !u.CPUsUsed.IsNull() || !u.Mean.CPUsUsed.IsNull() || !u.AgeSeconds.IsNull() {
				t.Errorf("%s/%s uses %+v", name, role, u)
			}
		}
	}
	want := map[string]string{
		"job": "no member is running", "job/ps": "no member is running", "job/worker": "it has no members",
		"farm": "it has no members", "farm/worker": "it has no members",
	}
	if diff := cmp.Diff(want, reasons); diff != "" {
		t.Errorf("reasons (-want +got):\n%s", diff)
	}
}
