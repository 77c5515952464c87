package main

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"time"

	"github.com/trainyard/terraform-provider-trainyard/internal/bounded"
)

// clock ends each second of a load, and records its measurements.
type clock struct {
	load *load
	// rebalancer is the address to ask whether partitions are being moved; empty to ask none.
	rebalancer string
	// demands is a trace, seconds has the measurements.
	demands, seconds *table

	rows int
}

// run ticks until ctx is done.
func (c *clock) run(ctx context.Context) error {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case now := <-tick.C:
			if c.rebalancer != "" {
				c.load.timeline.note(moving(ctx, c.rebalancer))
			}
			if err := c.tick(now); err != nil {
				return err
			}
		}
	}
}

func (c *clock) tick(now time.Time) error {
	since := c.load.since(now)
	if since < 0 {
		return nil
	}
	_, lag := c.load.ledger.counts()
	s := c.load.timeline.tick(now, c.load.demand.at(since), lag)
	row := []string{cell(now)}
	for _, n := range []float64{s.Wanted, float64(s.Acknowledged), s.P99, float64(s.Lag)} {
		row = append(row, number(n))
	}
	if err := c.seconds.row(row...); err != nil {
		return err
	}
	// A trace has a row for each second, even if the machine was too busy to tick.
	begun := now.Add(-since).Truncate(time.Second)
	for ; time.Duration(c.rows)*time.Second <= since; c.rows++ {
		at := time.Duration(c.rows) * time.Second
		if err := c.demands.row(cell(begun.Add(at)), number(c.load.demand.at(at))); err != nil {
			return err
		}
	}
	return nil
}

// moving reports whether a rebalancer is moving partitions. If it can't be reached, the answer is false.
func moving(ctx context.Context, address string) bool {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return false
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		slog.Debug("can't query the rebalancer", "error", err)
		return false
	}
	defer answer.Body.Close()
	var status struct {
		Reassigning int `json:"reassigning"`
	}
	return json.NewDecoder(bounded.Reader(answer.Body, bounded.Answer)).Decode(&status) == nil && status.Reassigning > 0
}
