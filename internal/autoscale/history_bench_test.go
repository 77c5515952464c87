package autoscale

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
)

// recorded returns a function for the decisions of this many policies, one each per round, with fluctuating loads, as
// in a busy cluster.
func recorded(policies int) (round func(now time.Time) []Entry) {
	random := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // the same each time
	type role struct {
		scaler *Autoscaler
		state  State
		count  int
		load   float64
	}
	roles := make([]role, policies)
	for i := range roles {
		scaler, err := New(domain.AutoscalingPolicy{
			Group: fmt.Sprintf("job-%d", i), Role: "worker", Min: 1, Max: 20,
			Metrics: map[string]domain.ScalingMetric{
				"cpu":   {Algorithm: domain.ScalingAlgorithm{Target: &domain.TargetAlgorithm{Value: 60}}},
				"queue": {Algorithm: domain.ScalingAlgorithm{Queue: &domain.QueueAlgorithm{PerMember: 100}}},
			},
		})
		if err != nil {
			panic(err)
		}
		roles[i] = role{scaler: scaler, count: 4, load: 240}
	}
	return func(now time.Time) []Entry {
		entries := make([]Entry, 0, policies)
		for i := range roles {
			r := &roles[i]
			r.load = min(max(r.load+10*random.NormFloat64(), 1), 1000)
			age := time.Duration(random.IntN(5000)) * time.Millisecond
			d := r.scaler.Decide(&r.state,
				Seen{Now: now, Count: r.count, Ready: r.count, Metrics: map[string]Measurement{
					"cpu":   {Value: min(r.load/float64(r.count), 100), At: now.Add(-age)},
					"queue": {Value: r.load / 2, At: now.Add(-age)},
				}})
			entries = append(entries, NewEntry(r.scaler.policy.Key(), now, r.count, d))
			r.count = d.To
		}
		return entries
	}
}

// BenchmarkHistory measures recording a round of decisions of a thousand policies, and storing it after each round.
func BenchmarkHistory(b *testing.B) {
	const policies, every = 1000, 5 * time.Second
	archive, err := OpenArchive(nil, time.Unix(1.8e9, 0))
	if err != nil {
		b.Fatal(err)
	}
	round, at := recorded(policies), time.Unix(1.8e9, 0)
	stored, written := map[string][]byte{}, 0
	for b.Loop() {
		b.StopTimer()
		entries := round(at)
		b.StartTimer()
		for _, e := range entries {
			archive.Add(e)
		}
		at = at.Add(every)
		put, remove, err := archive.Pack(at)
		if err != nil {
			b.Fatal(err)
		}
		for _, c := range put {
			stored[c.Name], written = c.Data, written+len(c.Data)
			archive.Stored(c.Name)
		}
		for _, name := range remove {
			delete(stored, name)
			archive.Removed(name)
		}
	}
	size := 0
	for _, data := range stored {
		size += len(data)
	}
	start := time.Now()
	kept, err := ReadHistory(stored, at, Selection{})
	if err != nil {
		b.Fatal(err)
	}
	readAll := time.Since(start)
	start = time.Now()
	if _, err := ReadHistory(stored, at, Selection{Group: "job-1", Role: "worker"}); err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(float64(time.Since(start).Milliseconds()), "ms/read-one")
	b.ReportMetric(float64(written)/float64(b.N), "B-written/op")
	b.ReportMetric(float64(size)/float64(len(kept)), "B/entry")
	b.ReportMetric(float64(len(kept)), "entries")
	b.ReportMetric(float64(size), "B-stored")
	b.ReportMetric(float64(readAll.Milliseconds()), "ms/read-all")
	b.ReportMetric(float64(len(stored)), "chunks")
}
