package sweep

import (
	"fmt"
	"testing"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
)

// oneCard returns a sweep of 10,000 runs, of which 37 are on a GPU, some have succeeded, and the others wait. One has
// just ended.
func oneCard(ended int) (Cluster, []Queue) {
	cluster := Cluster{
		Hosts: hostsOf(64, "gpu1"), Pools: slots(1199, map[string][]domain.Device{"gpu1": a40("GPU-a")}),
		FreeGPUMiB: map[string]int64{"GPU-a": 4000},
	}
	q := queueOf(measuring("lr", domain.MaxRuns))
	runs := map[string]domain.Run{}
	for i, key := range q.Keys[:ended+36] {
		runs[key] = endedRun(domain.RunSucceeded, "gpu1 GPU-a", at(-1))
		if i >= ended {
			runs[key] = Start(q.Document, q.Spec.Run(key), domain.Run{}, domain.ParsePlace("gpu1 GPU-a"), 1, at(-60))
		}
	}
	return cluster, []Queue{q.with(runs)}
}

// manyCards returns a sweep of 10,000 runs on 100 hosts with 8 GPUs each, which take one run each. Only some GPUs are
// free.
func manyCards(b *testing.B, free int) (Cluster, []Queue) {
	b.Helper()
	var names []string
	devices := map[string][]domain.Device{}
	for i := range 100 {
		name := fmt.Sprintf("gpu%02d", i)
		names = append(names, name)
		for j := range 8 {
			devices[name] = append(devices[name], a40(fmt.Sprintf("GPU-%02d-%d", i, j))...)
		}
	}
	cluster := Cluster{Hosts: hostsOf(64, names...), Pools: exclusive(devices)}
	q := queueOf(onGPUs(sweepOf("lr", domain.MaxRuns), 0))
	for on := 0; on < 800-free; {
		starts := Admit(cluster, []Queue{q}, noon).Starts
		if len(starts) == 0 {
			b.Fatal("nothing starts")
		}
		runs := map[string]domain.Run{}
		for _, start := range starts[:min(len(starts), 800-free-on)] {
			runs[start.Key] = Start(q.Document, q.Spec.Run(start.Key), domain.Run{}, start.At, 1, at(-60))
			on++
		}
		q = q.with(runs)
	}
	return cluster, []Queue{q}
}

// BenchmarkAdmit decides about 10,000 runs of which one has just ended.
func BenchmarkAdmit(b *testing.B) {
	try := func(name string, cluster Cluster, queues []Queue, want int) {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				if got := Admit(cluster, queues, noon); len(got.Starts) != want {
					b.Fatalf("%d start: %v", len(got.Starts), got.Waits)
				}
			}
		})
	}
	for _, ended := range []int{1, 5000, 9900} {
		cluster, queues := oneCard(ended)
		try(fmt.Sprintf("37 on a card, %d ended", ended), cluster, queues, 1)
	}
	for _, free := range []int{0, 1, 64} {
		cluster, queues := manyCards(b, free)
		try(fmt.Sprintf("%d on 800 cards", 800-free), cluster, queues, free)
	}
	cpus := sweepOf("lr", domain.MaxRuns)
	try("none on 8 CPUs", Cluster{Hosts: hostsOf(8, "a")}, []Queue{queueOf(cpus)}, 8)
}

// BenchmarkSummarise counts 10,000 runs, as each plan and each refresh of the data source does.
func BenchmarkSummarise(b *testing.B) {
	_, queues := oneCard(5000)
	for b.Loop() {
		Summarise(queues[0].Document, queues[0].Spec, queues[0].Runs)
	}
}

// BenchmarkRecord opens a record of 10,000 runs, and changes one.
func BenchmarkRecord(b *testing.B) {
	doc, stored := documentOf(sweepOf("lr", 0)), shelf{}
	r := OpenRecord(doc, stored)
	for i := range domain.MaxRuns {
		r.Set(fmt.Sprintf("r%04d", i), domain.Run{State: domain.RunSucceeded})
	}
	for _, record := range r.Changed() {
		stored[record.Key()] = record
	}
	for b.Loop() {
		r := OpenRecord(doc, stored)
		r.Set("r0007", domain.Run{State: domain.RunFailed})
		if n := len(r.Changed()); n != 1 {
			b.Fatalf("%d parts have changed", n)
		}
	}
}

// BenchmarkSplit splits and joins 10,000 runs.
func BenchmarkSplit(b *testing.B) {
	s := sweepOf("lr", domain.MaxRuns)
	for b.Loop() {
		if _, _, err := Split(s); err != nil {
			b.Fatal(err)
		}
	}
}
