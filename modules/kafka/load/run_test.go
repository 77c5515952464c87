package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"

	"github.com/trainyard/terraform-provider-trainyard/internal/acctest"
	"github.com/trainyard/terraform-provider-trainyard/internal/acctest/patience"
	"github.com/trainyard/terraform-provider-trainyard/internal/autoscale"
)

// cluster starts a Kafka in this process, and returns its brokers' addresses.
func cluster(t *testing.T, options ...kfake.Opt) string {
	t.Helper()
	c, err := kfake.NewCluster(append([]kfake.Opt{kfake.NumBrokers(3)}, options...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return strings.Join(c.ListenAddrs(), ",")
}

// drive runs a load until this many records are acknowledged, and returns its report and error.
func drive(t *testing.T, bootstrap string, limit time.Duration) (report, error) {
	t.Helper()
	l := newLoad(bootstrap, demand{"constant", 500, 500, time.Hour, 1}, topic{"orders", 4, 3}, 2, 100, 0)
	l.patience = limit
	ctx, cancel := context.WithCancel(acctest.Bounded(t))
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- l.drive(ctx) }()
	acctest.Eventually(t, "records", func() bool {
		counts, _ := l.ledger.counts()
		return counts.Acknowledged >= 100
	})
	cancel()
	err := <-ended
	return reportOf(l.ledger, l.timeline), err
}

// TestDrive: everything produced is read once and in order, even from a topic with other records.
func TestDrive(t *testing.T) {
	bootstrap := cluster(t)
	for range 2 {
		r, err := drive(t, bootstrap, patience.Limit)
		if err != nil || !r.sound() || r.Produced < 100 || r.Acknowledged != r.Produced || r.Consumed != r.Produced ||
			r.Errors != 0 {
			t.Errorf("it comes to %+v, %v", r, err)
		}
	}
}

// TestLost: a Kafka that acknowledges records without keeping them is detected.
func TestLost(t *testing.T) {
	if r, err := drive(t, cluster(t, kfake.BlackholeProduce()), 200*time.Millisecond); err == nil || r.sound() ||
		r.Lost != r.Acknowledged || r.Consumed != 0 {
		t.Errorf("it comes to %+v, %v", r, err)
	}
}

func TestRecord(t *testing.T) {
	padding := []byte("padding")
	value := encode(7, 3, 1<<40, padding)
	if producer, number, ours := decode(7, value, padding); producer != 3 || number != 1<<40 || !ours {
		t.Errorf("it is %d of %d, %v", number, producer, ours)
	}
	for name, other := range map[string][]byte{
		"of another run": encode(8, 3, 1, padding), "changed": slices.Concat(value[:len(value)-1], []byte{0}),
		"cut off": value[:len(value)-1], "short": value[:header-1], "empty": nil,
	} {
		if _, _, ours := decode(7, other, padding); ours {
			t.Errorf("one that is %s is taken for ours", name)
		}
	}
}

// TestTrace: the recorded demand is a valid trace, with a row for each second.
func TestTrace(t *testing.T) {
	d := demand{"ramp", 0, 100, 10 * time.Second, 1}
	l := newLoad("", d, topic{}, 1, 100, 0)
	var demands, seconds bytes.Buffer
	c := &clock{load: l}
	var err error
	if c.demands, err = newTable(&demands, "time", "load"); err != nil {
		t.Fatal(err)
	}
	if c.seconds, err = newTable(&seconds, "time"); err != nil {
		t.Fatal(err)
	}
	begun := time.Unix(1_800_000_000, 123)
	if err := c.tick(begun); err != nil {
		t.Fatal(err)
	}
	l.begun.Store(&begun)
	for _, since := range []time.Duration{999 * time.Millisecond, 2003 * time.Millisecond, 5 * time.Second} {
		if err := c.tick(begun.Add(since)); err != nil {
			t.Fatal(err)
		}
	}
	trace, err := autoscale.ReadCSV(&demands)
	if err != nil {
		t.Fatal(err)
	}
	if want := []float64{0, 10, 20, 30, 40, 50}; !slices.Equal(trace.Load, want) || trace.Step != time.Second ||
		!trace.Start.Equal(time.Unix(1_800_000_000, 0)) {
		t.Errorf("the trace is %+v", trace)
	}
	if rows := strings.Count(seconds.String(), "\n"); rows != 4 {
		t.Errorf("what was measured has %d rows", rows)
	}
}

// TestMoving: partitions are being moved only if a rebalancer says so.
func TestMoving(t *testing.T) {
	for body, want := range map[string]bool{
		`{"reassigning": 1}`: true, `{"reassigning": 0}`: false, "<html>": false, "": false,
	} {
		server := httptest.NewServer(
			http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, body) }),
		)
		if want { // on a busy machine an answer may come too late
			acctest.Eventually(t, body+" to count as one that moves partitions",
				func() bool { return moving(acctest.Bounded(t), server.URL) })
		} else if moving(acctest.Bounded(t), server.URL) {
			t.Errorf("%q counts as one that moves partitions", body)
		}
		server.Close()
		if moving(acctest.Bounded(t), server.URL) {
			t.Error("one that can't be asked moves partitions")
		}
	}
}

// TestUsage: the error for an invalid flag says what is allowed.
func TestUsage(t *testing.T) {
	for want, args := range map[string][]string{
		`list of brokers as host:port, got "kafka"`:     {"-bootstrap", "kafka"},
		"-partitions must be 1 to 10000, got 0":         {"-partitions", "0"},
		"-size must be 20 to 900000, got 10":            {"-size", "10"},
		"-replication-factor must be 1 to 100, got 101": {"-replication-factor", "101"},
		"unknown -shape": {"-shape", "flat"},
		`unexpected argument "more": only flags are allowed`: {"more"},
	} {
		if err := run(acctest.Bounded(t), append([]string{"-listen", "127.0.0.1:0"}, args...),
			io.Discard); err == nil || errors.Is(err, errUnsound) || !strings.Contains(err.Error(), want) {
			t.Errorf("the error is %v, want %s", err, want)
		}
	}
}
