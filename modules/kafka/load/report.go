package main

// report is what a run comes to.
type report struct {
	tally
	// Lost were acknowledged, and can't be read.
	Lost uint64 `json:"lost"`
	// Rest and Change are the latencies while no partition was moved, and while some were.
	Rest    latency  `json:"rest"`
	Change  latency  `json:"change"`
	Seconds []second `json:"seconds"`
}

// sound reports whether no record was lost, read twice, or read out of order.
func (r report) sound() bool { return r.Lost+r.Duplicated+r.OutOfOrder == 0 }

func reportOf(l *ledger, t *timeline) report {
	counts, _ := l.counts()
	t.mu.Lock()
	defer t.mu.Unlock()
	return report{counts, l.lost(), latencyOf(&t.rest), latencyOf(&t.change), t.seconds}
}
