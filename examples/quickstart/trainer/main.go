// Command trainer learns to read handwritten digits with asynchronous parameter servers.
//
// It is an ordinary training program: its role and its peers come only from the TF_CONFIG environment variable. As a
// `ps`, it serves its shard of the parameters until it is told to stop; as a `worker` or `chief`, it pulls parameters,
// computes gradients on its share of the data, and pushes them back. With -alone it does both, and needs no TF_CONFIG.
// It reports progress on standard output, one JSON object per line.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"syscall"
	"time"
)

// Exit codes of the trainer. An unfinished worker that was interrupted reports the signal as a shell does, so that its
// training doesn't count as complete.
const (
	exitDone        = 0
	exitFailed      = 1
	exitUsage       = 2
	exitInterrupted = 128 + int(syscall.SIGTERM)
)

// errInterrupted says that the trainer was asked to stop before its last step.
var errInterrupted = errors.New("interrupted before the last step")

// options are the flags. All members of a group get the same ones.
type options struct {
	alone        bool
	steps        int
	batchSize    int
	learningRate float64
	seed         uint64
	data         string
	modelDir     string
	logEvery     int
	stepInterval time.Duration
	patience     time.Duration
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	os.Exit(run(ctx, os.Args[1:], os.Getenv("TF_CONFIG"), os.Stdout, os.Stderr))
}

// run is the whole program: it returns the exit code once the task is done, has failed, or ctx has ended.
func run(ctx context.Context, args []string, tfConfig string, stdout, stderr io.Writer) int {
	opts, err := parseOptions(args, stderr)
	if errors.Is(err, flag.ErrHelp) {
		return exitDone
	}
	if err != nil {
		return exitUsage // the flag set has printed why
	}
	task := task{Type: taskWorker} // alone, it is the only task
	if !opts.alone {
		if task, err = parseTask(tfConfig); err != nil {
			fmt.Fprintln(stderr, "trainer:", err)
			return exitUsage
		}
	}

	log := newLogger(stdout).With("task", task.Type, "index", task.Index)
	switch err := perform(ctx, task, opts, log); {
	case errors.Is(err, errInterrupted):
		fmt.Fprintf(stderr, "trainer: %s: %v\n", task, err)
		return exitInterrupted
	case err != nil:
		fmt.Fprintf(stderr, "trainer: %s: %v\n", task, err)
		return exitFailed
	}
	return exitDone
}

// perform does the work of one task.
func perform(ctx context.Context, task task, opts options, log *slog.Logger) error {
	if task.Type == taskPS {
		listener, err := net.Listen("tcp", bindAddress(task.address()))
		if err != nil {
			return fmt.Errorf("cannot serve parameters on %s: %w", task.address(), err)
		}
		return serve(ctx, listener, newParameterServer(task.shard(), opts), log)
	}
	digits, err := loadDigits(opts.data)
	if err != nil {
		return err
	}
	if opts.alone {
		return trainAlone(ctx, opts, splitDigits(digits), log)
	}
	return train(ctx, task, opts, splitDigits(digits), log)
}

// parseOptions parses and checks the flags. It also writes errors to stderr, with the usage.
func parseOptions(args []string, stderr io.Writer) (options, error) {
	var opts options
	flags := flag.NewFlagSet("trainer", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.BoolVar(&opts.alone, "alone", false, "train in this process alone, without TF_CONFIG")
	flags.IntVar(&opts.steps, "steps", 1500, "mini-batches that each worker trains on; 0 trains until stopped")
	flags.IntVar(&opts.batchSize, "batch-size", 32, "images per mini-batch")
	flags.Float64Var(&opts.learningRate, "learning-rate", 0.1, "factor by which a parameter server applies a gradient")
	flags.Uint64Var(&opts.seed, "seed", 1, "seed of the initial parameters and of the order of the images")
	flags.StringVar(&opts.data, "data", "", "gzip-compressed CSV file of digits (default: the data set in the binary)")
	flags.StringVar(&opts.modelDir, "model-dir", "",
		"folder in which the chief saves the trained model (default: not saved)")
	flags.IntVar(&opts.logEvery, "log-every", 100, "steps between progress lines")
	flags.DurationVar(&opts.stepInterval, "step-interval", 0, "pause after each step, to slow training down")
	flags.DurationVar(&opts.patience, "connect-timeout", time.Minute, "how long a parameter server may be unreachable")
	if err := flags.Parse(args); err != nil {
		return options{}, err
	}

	var err error
	switch {
	case flags.NArg() > 0:
		err = fmt.Errorf("unexpected argument %q: the trainer takes flags only", flags.Arg(0))
	case opts.steps < 0:
		err = fmt.Errorf("-steps is %d: it must be 0 (endless) or more", opts.steps)
	case opts.batchSize < 1:
		err = fmt.Errorf("-batch-size is %d: it must be 1 or more", opts.batchSize)
	case !(opts.learningRate > 0):
		err = fmt.Errorf("-learning-rate is %g: it must be above 0", opts.learningRate)
	case opts.logEvery < 1:
		err = fmt.Errorf("-log-every is %d: it must be 1 or more", opts.logEvery)
	case opts.stepInterval < 0:
		err = fmt.Errorf("-step-interval is %s: it must be 0s or more", opts.stepInterval)
	case opts.patience <= 0:
		err = fmt.Errorf("-connect-timeout is %s: it must be above 0s", opts.patience)
	}
	if err != nil {
		fmt.Fprintln(stderr, "trainer:", err)
		flags.Usage()
	}
	return opts, err
}

// newLogger logs JSON lines such as {"time":…,"event":…,…}.
func newLogger(w io.Writer) *slog.Logger {
	return slog.New(slog.NewJSONHandler(w, &slog.HandlerOptions{
		ReplaceAttr: func(groups []string, attr slog.Attr) slog.Attr {
			switch attr.Key {
			case slog.LevelKey:
				return slog.Attr{}
			case slog.MessageKey:
				attr.Key = "event"
			}
			return attr
		},
	}))
}
