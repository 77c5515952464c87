package top

import (
	"context"

	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
	"github.com/trainyard/terraform-provider-trainyard/internal/overview"
)

// source reads what is shown of a cluster.
type source struct {
	engine   engine.Engine
	overview overview.Source
}

// answer is the result of reading the cluster.
type answer struct {
	query   query
	reading overview.Reading
	sweeps  overview.Sweeps
	log     memberLog
	err     error
}

// read reads the overview, and what the query's tab shows.
func (s *source) read(ctx context.Context, q query) answer {
	a, snapshot := answer{query: q}, s.engine.Snapshot()
	s.overview.Snapshot = func() overview.Cluster { return snapshot }
	if a.reading, a.err = s.overview.Read(ctx); a.err != nil {
		return a
	}
	switch {
	case q.tab == tabSweeps:
		a.sweeps, a.err = overview.ReadSweeps(ctx, snapshot)
	case q.member != "":
		a.log = memberLog{q.member, overview.ReadLogs(ctx, snapshot, []string{q.member}, logOptions)[q.member]}
	}
	return a
}

// take adds an answer to the state.
func (s *state) take(a answer) {
	if s.err = a.err; a.err != nil {
		return
	}
	s.reading = a.reading
	switch {
	case a.query.tab == tabSweeps:
		s.sweeps = &a.sweeps
	case a.query.member != "":
		s.log = a.log
	}
}
