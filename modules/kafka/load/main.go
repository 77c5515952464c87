// Command load sends records to a Kafka topic at the rate of a demand curve, reads them back, and reports whether any
// were lost, duplicated, or out of order.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"github.com/trainyard/terraform-provider-trainyard/modules/kafka/internal/serve"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	context.AfterFunc(ctx, stop) // a second signal kills it
	if err := run(ctx, os.Args[1:], os.Stdout); errors.Is(err, flag.ErrHelp) {
		return
	} else if err != nil {
		fmt.Fprintln(os.Stderr, "load:", err)
		os.Exit(1)
	}
}

// errUnsound says that records were lost, duplicated, or out of order.
var errUnsound = errors.New("records were lost, duplicated or out of order")

func run(ctx context.Context, args []string, out io.Writer) (err error) {
	flags := flag.NewFlagSet("load", flag.ContinueOnError)
	var d demand
	var t topic
	bootstrap := flags.String("bootstrap", "", "bootstrap brokers, `host:port`, separated by commas")
	flags.StringVar(&d.shape, "shape", "constant", "`shape` of the demand: constant, ramp, steps, day or spike")
	flags.Float64Var(&d.base, "base", 100, "minimum demand, in records a second")
	flags.Float64Var(&d.peak, "peak", 1000, "maximum demand, in records a second")
	flags.DurationVar(&d.period, "period", time.Hour, "time until the demand repeats; for ramp, until the peak")
	flags.Uint64Var(&d.seed, "seed", 1, "seed of the times of spikes and the content of records")
	flags.StringVar(&t.name, "topic", "load", "`name` of the topic, which is created if it doesn't exist")
	flags.IntVar(&t.partitions, "partitions", 12, "number of partitions of the topic")
	flags.IntVar(&t.factor, "replication-factor", 3, "number of replicas of each partition, if the topic is created")
	size := flags.Int("size", 1000, "size of a record in `bytes`")
	producers := flags.Int("producers", 2, "number of producers that share the demand")
	duration := flags.Duration("duration", 0, "how long to send; 0 is until SIGTERM")
	listen := flags.String("listen", serve.Listen(), "`address` of GET /status and GET /healthz")
	rebalancer := flags.String("rebalancer", "",
		"`URL` of the rebalancer's /status, to report latencies while it moves partitions separately")
	record := flags.String("record", "", "`file` to write the demand to, as a trace for policy_backtest")
	latencies := flags.String("latencies", "", "`file` to write the measurements of each second to")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if err := d.check(); err != nil {
		return err
	}
	for _, bound := range []struct {
		flag              string
		value, from, most int
	}{
		{"partitions", t.partitions, 1, 10_000}, {"replication-factor", t.factor, 1, 100},
		{"size", *size, header, 900_000}, {"producers", *producers, 1, 1000},
	} {
		if bound.value < bound.from || bound.value > bound.most {
			return fmt.Errorf("-%s must be %d to %d, got %d", bound.flag, bound.from, bound.most, bound.value)
		}
	}
	if *duration < 0 {
		return fmt.Errorf("-duration must not be negative, got %s", *duration)
	}
	if flags.NArg() > 0 {
		return fmt.Errorf("unexpected argument %q: only flags are allowed", flags.Arg(0))
	}
	l := newLoad(*bootstrap, d, t, *producers, *size, *duration)
	c := &clock{load: l, rebalancer: *rebalancer}
	for _, file := range []struct {
		name    string
		table   **table
		columns []string
	}{
		{*record, &c.demands, []string{"time", "load"}},
		{*latencies, &c.seconds, []string{"time", "wanted", "acknowledged", "p99_ms", "lag"}},
	} {
		to := io.Discard
		if file.name != "" {
			created, err := os.Create(file.name)
			if err != nil {
				return err
			}
			defer created.Close()
			to = created
		}
		if *file.table, err = newTable(to, file.columns...); err != nil {
			return err
		}
	}
	// The server and the clock run until everything is read; if either fails, the load ends.
	beside, stop := context.WithCancel(context.WithoutCancel(ctx))
	ctx, fail := context.WithCancelCause(ctx)
	var all sync.WaitGroup
	for _, part := range []func() error{
		func() error { return serve.Run(beside, *listen, l.handler()) },
		func() error { return c.run(beside) },
	} {
		all.Go(func() {
			if err := part(); err != nil {
				fail(err)
			}
		})
	}
	err = l.drive(ctx)
	stop()
	all.Wait()
	if cause := context.Cause(ctx); cause != nil && !errors.Is(cause, context.Canceled) {
		err = errors.Join(err, cause)
	}
	fail(nil)
	// Also count what was due after the last second.
	_, lag := l.ledger.counts()
	l.timeline.tick(time.Now(), 0, lag)
	result := reportOf(l.ledger, l.timeline)
	if err := json.NewEncoder(out).Encode(result); err != nil {
		return err
	}
	if !result.sound() {
		err = errors.Join(err, errUnsound)
	}
	return err
}
