package utilisation

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
	"github.com/trainyard/terraform-provider-trainyard/internal/provider/resourcekit"
)

// What is not known has no value, no time and no age, and a clock that goes ahead makes nothing younger than new.
func TestFlattenMemberUsage(t *testing.T) {
	now := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	cpus := domain.Measure{Last: new(1.0), Mean: new(2.0), Max: new(4.0), P95: new(3.0)}
	for name, test := range map[string]struct {
		usage     engine.MemberUsage
		sampledAt string
		age       *float64
	}{
		"sampled before":          {engine.MemberUsage{CPUs: cpus, SampledAt: now.Add(-1500 * time.Millisecond)}, "2026-11-22T11:59:58Z", new(1.5)},
		"by a clock that is fast": {engine.MemberUsage{CPUs: cpus, SampledAt: now.Add(time.Second)}, "2026-11-22T12:00:01Z", new(0.0)},
		"not known":               {engine.MemberUsage{SampledAt: now, Reason: "no agent"}, "", nil},
		"never sampled":           {engine.MemberUsage{CPUs: cpus}, "", nil},
	} {
		t.Run(name, func(t *testing.T) {
			got := flattenMemberUsage(test.usage, now)
			want := [4]*float64{test.usage.CPUs.Last, test.usage.CPUs.Mean, test.usage.CPUs.Max, test.usage.CPUs.P95}
			if diff := cmp.Diff(want, [4]*float64{got.CPUsUsed.ValueFloat64Pointer(), got.Mean.CPUsUsed.ValueFloat64Pointer(), got.Max.CPUsUsed.ValueFloat64Pointer(), got.P95.CPUsUsed.ValueFloat64Pointer()}); diff != "" {
				t.Errorf("last, mean, max, p95 (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(test.age, got.AgeSeconds.ValueFloat64Pointer()); diff != "" || got.SampledAt.ValueString() != test.sampledAt {
				t.Errorf("sampled at %s, want %q; its age (-want +got):\n%s", got.SampledAt, test.sampledAt, diff)
			}
			if resourcekit.Value(got.Reason) != test.usage.Reason {
				t.Errorf("the reason is %v, want %q", got.Reason, test.usage.Reason)
			}
		})
	}
}

// A role, or a group, that has been scaled to none is there, and nothing is known of it.
func TestFlattenUsageWithoutMembers(t *testing.T) {
	var got Model
	got.flatten(engine.Usage{
		Members: map[string]engine.MemberUsage{"job-ps-0": {Group: "job", Role: "ps", Reason: "no agent"}},
		Roles:   map[string][]string{"job": {"ps", "worker"}, "farm": {"worker"}},
	}, time.Now())
	said := map[string]string{}
	for name, group := range got.Groups {
		said[name] = resourcekit.Value(group.Reason)
		for role, u := range group.Roles {
			said[name+"/"+role] = resourcekit.Value(u.Reason)
			if !u.CPUsUsed.IsNull() || !u.Mean.CPUsUsed.IsNull() || !u.AgeSeconds.IsNull() {
				t.Errorf("%s/%s uses %+v", name, role, u)
			}
		}
	}
	want := map[string]string{
		"job": "no member runs", "job/ps": "no member runs", "job/worker": "it has no members", "farm": "it has no members", "farm/worker": "it has no members",
	}
	if diff := cmp.Diff(want, said); diff != "" {
		t.Errorf("reasons (-want +got):\n%s", diff)
	}
}
