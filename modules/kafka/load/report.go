package main

// report is the result of a run.
type report struct {
	tally
	// Lost records were acknowledged, but can't be read.
	Lost uint64 `json:"lost"`
	// Rest is the latency while no partition was being moved, Change while some were.
	Rest    latency  `json:"rest"`
	Change  latency  `json:"change"`
	Seconds []second `json:"seconds"`
}

// sound reports whether no record was lost, duplicated, or out of order.
func (r report) sound() bool { return r.Lost+r.Duplicated+r.OutOfOrder == 0 }

func reportOf(l *ledger, t *timeline) report {
	counts, _ := l.counts()
	t.mu.Lock()
	defer t.mu.Unlock()
	return report{counts, l.lost(), latencyOf(&t.rest), latencyOf(&t.change), t.seconds}
}
