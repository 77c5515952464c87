package autoscale

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
)

func TestQueue(t *testing.T) {
	duration := func(d time.Duration) *domain.Duration { return (*domain.Duration)(&d) }
	type sample struct {
		after  time.Duration // since the beginning
		length float64
		want   int
	}
	for name, test := range map[string]struct {
		per      float64
		coolDown *domain.Duration
		count    int
		samples  []sample
	}{
		"a member for every five": {
			5, nil, 1,
			[]sample{{0, 1, 1}, {5 * time.Second, 5, 1}, {10 * time.Second, 6, 2}, {15 * time.Second, 250, 50}},
		},
		"30 messages, 10 for each pod (documentation of KEDA's scaler for AWS SQS)": {10, nil, 1, []sample{{0, 30, 3}}},
		"the first one": {
			100, nil, 0,
			[]sample{{0, 0, 0}, {5 * time.Second, 1, 1}, {10 * time.Second, 0.001, 1}, {15 * time.Second, 1e-12, 1}},
		},
		"an empty queue starts nobody": {5, nil, 0, []sample{{0, 0, 0}, {time.Hour, 0, 0}}},
		"the last one goes after five minutes": {5, nil, 8, []sample{
			{0, 40, 8}, {5 * time.Second, 0, 1}, {10 * time.Second, 0, 1}, {304 * time.Second, 0, 1},
			{305 * time.Second, 0, 0}, {310 * time.Second, 0, 0},
		}},
		"the time begins anew": {5, nil, 1, []sample{
			{0, 0, 1}, {299 * time.Second, 1, 1}, {301 * time.Second, 0, 1}, {600 * time.Second, 0, 1},
			{601 * time.Second, 0, 0},
		}},
		"another cool-down": {
			5, duration(30 * time.Second), 2,
			[]sample{{0, 0, 1}, {29 * time.Second, 0, 1}, {30 * time.Second, 0, 0}, {35 * time.Second, 7, 2}},
		},
		"no cool-down":       {5, duration(0), 2, []sample{{0, 0, 0}}},
		"fewer than nothing": {5, nil, 2, []sample{{0, -3, 1}, {5 * time.Minute, -3, 0}}},
		"a clock that goes back": {5, nil, 2, []sample{
			{time.Hour, 0, 1}, {0, 0, 1}, {4 * time.Minute, 0, 1}, {5 * time.Minute, 0, 0},
		}},
		"a part of a member's": {0.5, nil, 1, []sample{{0, 3, 6}}},
	} {
		t.Run(name, func(t *testing.T) {
			var m Memory
			count := test.count
			var got, want []int
			for _, s := range test.samples {
				p := queue(domain.QueueAlgorithm{PerMember: test.per, CoolDown: test.coolDown}, &m,
					asking{now: noon.Add(s.after), count: count, metric: Measurement{Value: s.length}})
				sane(t, p)
				if p.abstains {
					t.Errorf("it abstains: %s", p.why)
				}
				count = p.count
				got, want = append(got, count), append(want, s.want)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("counts (-want +got):\n%s", diff)
			}
		})
	}
}

func TestQueueWhy(t *testing.T) {
	for name, test := range map[string]struct {
		length float64
		since  time.Duration
		want   string
	}{
		"work":        {12, time.Minute, "a queue of 12, 5 for each member"},
		"empty":       {0, 90 * time.Second, "the queue has been empty for 1m30s, and the last member stays for 5m0s"},
		"a fraction":  {0, 1560247016, "the queue has been empty for 1.6s, and the last member stays for 5m0s"},
		"empty since": {0, 10 * time.Minute, "the queue has been empty for 10m0s"},
	} {
		t.Run(name, func(t *testing.T) {
			m := Memory{EmptySince: noon.Add(-test.since)}
			if got := queue(domain.QueueAlgorithm{PerMember: 5}, &m,
				asking{now: noon, count: 3, metric: Measurement{Value: test.length}}).why; got != test.want {
				t.Errorf("%q, want %q", got, test.want)
			}
		})
	}
}
