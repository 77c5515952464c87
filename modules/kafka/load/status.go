package main

import (
	"net/http"
	"time"

	"github.com/trainyard/terraform-provider-trainyard/modules/kafka/internal/serve"
)

// status is the state of a load, as returned by GET /status.
type status struct {
	// Load is the current demand, in records per second.
	Load     float64 `json:"load"`
	Produced uint64  `json:"produced"`
	Consumed uint64  `json:"consumed"`
	Errors   uint64  `json:"errors"`
	// P99 is the latency over the last seconds, in milliseconds.
	P99 float64 `json:"p99_ms"`
	// Lag is the number of acknowledged records not read yet, LagGrowth by how many per second it grows.
	Lag       uint64  `json:"lag"`
	LagGrowth float64 `json:"lag_growth"`
}

func (l *load) status(now time.Time) status {
	counts, lag := l.ledger.counts()
	p99, growth := l.timeline.now()
	return status{l.demand.at(l.since(now)), counts.Produced, counts.Consumed, counts.Errors, p99, lag, growth}
}

func (l *load) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /status", func(w http.ResponseWriter, _ *http.Request) {
		serve.JSON(w, http.StatusOK, l.status(time.Now()))
	})
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) })
	return mux
}
