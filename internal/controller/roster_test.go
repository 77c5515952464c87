package controller

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/trainyard/terraform-provider-trainyard/internal/agent/metrics"
	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
)

// register is an engine that lists members or fails, and counts how often it was asked.
type register struct {
	engine.Engine

	observed []domain.Observed
	err      error
	asked    int
}

func (r *register) Snapshot() engine.Engine { return r }

func (r *register) Observe(ctx context.Context, _ string) ([]domain.Observed, error) {
	r.asked++
	if _, bounded := ctx.Deadline(); !bounded {
		return nil, errors.New("it may take for ever")
	}
	return r.observed, r.err
}

// TestRoster: members are listed as long as any part of them runs. The engine is asked at most once a second, and no
// members are listed if it fails.
func TestRoster(t *testing.T) {
	e := &register{observed: []domain.Observed{
		{Name: "job-ps-0", Group: "job", Role: "ps", State: domain.StateCompleted},
		{Name: "job-worker-0", Group: "job", Role: "worker", State: domain.StateRunning, Instance: "c0ffee"},
	}}
	r := newRoster(t.Context(), e, "lab", slog.New(slog.DiscardHandler))
	want := []metrics.MemberInfo{{Cluster: "lab", Group: "job", Role: "worker", Member: "job-worker-0", ID: "c0ffee"}}
	for range 3 {
		if diff := cmp.Diff(want, r.running()); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		r.learned = time.Now().Add(time.Hour) // on a busy machine more time may pass
	}
	if e.asked != 1 {
		t.Errorf("the engine was asked %d times within a second, want once", e.asked)
	}
	e.err = errors.New("no manager answers")
	r.learned = time.Now().Add(-rosterKept)
	if found := r.running(); len(found) > 0 {
		t.Errorf("with an engine that doesn't answer: %+v", found)
	}
	e.err = nil
	r.learned = time.Now().Add(-rosterKept)
	if diff := cmp.Diff(want, r.running()); diff != "" {
		t.Errorf("once it answers again (-want +got):\n%s", diff)
	}
}
