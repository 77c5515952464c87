package controller

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
)

// peaksEvery is how often the usage of runs is measured, over a window that leaves no gap.
const (
	peaksEvery  = 10 * time.Second
	peaksWindow = 15 * time.Second
)

// peaks are the highest measured usages of running members, by name. They are lost with the controller.
type peaks struct {
	due    time.Time
	memory map[string]int64
	gpu    map[string]int64
}

func newPeaks() peaks { return peaks{memory: map[string]int64{}, gpu: map[string]int64{}} }

// measure records the usage of the members of sweeps when due, and returns when it is due again.
func (p *peaks) measure(ctx context.Context, s *sweeper, now time.Time) (next time.Time) {
	if !slices.ContainsFunc(slices.Collect(maps.Values(s.sweeps)), (*followedSweep).active) {
		return now.Add(atLatest)
	}
	if p.due.After(now) && !p.due.After(now.Add(peaksEvery)) {
		return p.due
	}
	p.due = now.Add(peaksEvery)
	usage, err := s.reconciler.Engine.Usage(ctx, peaksWindow)
	if err != nil {
		s.log.Warn("measuring the usage of runs failed; trying again", "error", err)
		return p.due
	}
	for name, member := range usage.Members {
		// A member that is leaving belongs to an earlier attempt.
		if f := s.sweeps[member.Group]; f != nil && f.record.Runs()[member.Role].Active() {
			raise(p.memory, name, member.MemoryMiB)
			raise(p.gpu, name, member.GPUMemoryMiB)
		}
	}
	return p.due
}

func raise(peaks map[string]int64, name string, measured domain.Measure) {
	if measured.Max != nil {
		peaks[name] = max(peaks[name], int64(*measured.Max))
	}
}

// take returns and forgets the peaks of a member that has ended; nil for what was not measured.
func (p *peaks) take(name string) (memory, gpu *int64) {
	of := func(peaks map[string]int64) *int64 {
		defer delete(peaks, name)
		if most, measured := peaks[name]; measured {
			return &most
		}
		return nil
	}
	return of(p.memory), of(p.gpu)
}
