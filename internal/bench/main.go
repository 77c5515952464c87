//go:build linux

// Command bench measures what Trainyard costs on this machine: it prints one table per question, with the bars to hold.
//
// It measures the real thing: a built provider, run by a real Terraform or OpenTofu, with real members. It asserts
// nothing; whether a bar is held on a busy machine is for the reader to judge. It is run by run.sh.
//
// The part policies measures nothing: its figures are computed by models, and are the same everywhere. It needs no
// built programs:
//
//	go run ./internal/bench -only policies [-trace load.csv or folder] [-curves folder]
//
// The same goes for the part learned, which trains models for a quarter of an hour.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/trainyard/terraform-provider-trainyard/internal/agent/telemetry"
)

// bench is what all parts share.
type bench struct {
	out      io.Writer     // receives the tables
	progress io.Writer     // receives what is being measured
	tf       string        // path of terraform or tofu
	provider string        // path of the provider's binary
	bare     string        // path of the provider that does nothing
	member   string        // path of the program that members run on a Swarm and on hosts, linked statically
	trainer  string        // path of the quickstart's trainer
	gpus     gpus          // the GPUs that agents see
	work     string        // folder for everything
	cli      string        // path of Terraform's CLI configuration
	runs     int           // how often each figure is measured
	trace    string        // path of a load as CSV, or ""
	training time.Duration // how long a training is measured
	day      time.Duration // length of a day for Kafka
	updates  int           // length of a model's training
	curves   string        // folder for the curves of policies, or "" for a new one
}

// parts are the questions, in the order of the answers.
var parts = []struct {
	name  string
	title string
	run   func(*bench, context.Context) ([]fmt.Stringer, error)
	// computed parts run nothing and need nothing.
	computed bool
	// system parts train for a long time: for an hour with real software, or for minutes in a model. They only run if
	// named.
	system bool
}{
	{"plan", "Plan of a group in which nothing changed", (*bench).plan, false, false},
	{"apply", "Apply and destroy of a group, over the same of a cluster without groups", (*bench).apply, false, false},
	{"start", "Start of the provider", (*bench).start, false, false},
	{"supervise", "Supervision of idle members", (*bench).supervise, false, false},
	{"agent", "An agent that measures its host", (*bench).agentCost, false, false},
	{"scaling", "A controller that follows a thousand autoscaling policies", (*bench).scaling, false, false},
	{
		"reaction", "Autoscaling policies that follow a load of processors, on the engine process", (*bench).reaction,
		false, false,
	},
	{"sweeps", "Sweeps of independent runs", (*bench).sweeps, false, false},
	{"swarm", "A Swarm of three nodes, beside the docker command doing the same", (*bench).swarm, false, false},
	{"hosts", "Bare hosts, beside a Swarm, and Ansible doing the same", (*bench).hosts, false, false},
	{"policies", "Scaling policies over published jobs and over traces, in a model", (*bench).policies, true, false},
	{
		"learned", "Models of the algorithm learned, beside the optimum and rules that were tuned as long, in a model",
		(*bench).learned, true, true,
	},
	{
		"ps-worker", "Parameter servers and workers with a real TensorFlow, beside B. Krasuski's measurements of 2020",
		(*bench).psWorker, false, true,
	},
	{
		"multiworker", "Synchronous training with TensorFlow, on bare hosts and on a Swarm", (*bench).multiworker,
		false, true,
	},
	{
		"spark",
		"Spark with XGBoost on one, two and four workers, and by the policy, beside P. Stolin's measurements of 2021",
		(*bench).spark, false, true,
	},
	{
		"experiments", "Fifty reinforcement-learning experiments on one card, beside a paper's measurements of 2022",
		(*bench).experiments, false, true,
	},
	{
		"kafka", "A day of Kafka's brokers by each rule, among them models of the algorithm learned", (*bench).kafka,
		false, true,
	},
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout, os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, out, progress io.Writer) (err error) {
	var usual, systems []string
	for _, part := range parts {
		if part.system {
			systems = append(systems, part.name)
		} else {
			usual = append(usual, part.name)
		}
	}
	names := slices.Concat(usual, systems)
	b := &bench{out: out, progress: progress}
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	flags.IntVar(&b.runs, "runs", 7, "how many times each figure is measured")
	only := flags.String("only", strings.Join(usual, ","),
		"parts to run, separated by commas; not run by default: "+strings.Join(systems, ", "))
	flags.DurationVar(&b.training, "training", 20*time.Second,
		"how long each training of ps-worker is measured; its policy gets twice that to settle")
	flags.DurationVar(&b.day, "day", 30*time.Minute, "length of the day that kafka measures once for each rule")
	flags.IntVar(&b.updates, "updates", learnedUpdates, "number of updates in each training of a learned model")
	flags.StringVar(&b.tf, "tf", "", "path of terraform or tofu")
	flags.StringVar(&b.provider, "provider", "", "path of the provider's binary")
	flags.StringVar(&b.bare, "bare", "", "path of the provider that does nothing, for comparing plans")
	flags.StringVar(&b.member, "member", "", "path of the program that members run on a Swarm and on hosts")
	flags.StringVar(&b.trainer, "trainer", "", "path of the quickstart's trainer")
	flags.StringVar(&b.gpus.agent, "agent", "", "path of the agent's binary, built with cgo")
	flags.StringVar(&b.trace, "trace", "",
		"path of a recorded load on which policies are also compared: a CSV file with time and value, or a "+
			"folder of them")
	flags.StringVar(&b.curves, "curves", "",
		"folder to write the curves of policies to, as SVG (default: a new temporary folder)")
	flags.StringVar(&b.work, "work", "", "folder for temporary files; deleted at the end")
	pictures := flags.String("pictures", "", "folder to write the pictures of the guides to; nothing else is run then")
	parseErr := flags.Parse(args)
	if b.work != "" {
		defer func() { err = errors.Join(err, os.RemoveAll(b.work)) }()
	}
	if errors.Is(parseErr, flag.ErrHelp) {
		return nil
	}
	if parseErr != nil {
		return parseErr
	}
	if *pictures != "" {
		return draw(*pictures)
	}
	wanted := strings.Split(*only, ",")
	for _, name := range wanted {
		if !slices.Contains(names, name) {
			return fmt.Errorf("-only %q: there is no part of this name; there are %s", name, strings.Join(names, ", "))
		}
	}
	for _, part := range parts {
		if !part.computed && slices.Contains(wanted, part.name) {
			if err := b.prepare(ctx); err != nil {
				return err
			}
			break
		}
	}
	for _, part := range parts {
		if !slices.Contains(wanted, part.name) {
			continue
		}
		sections, err := part.run(b, ctx)
		if ctx.Err() != nil {
			if cleanup, failed := errors.AsType[*cleanupError](err); failed {
				return fmt.Errorf("interrupted: %w", cleanup)
			}
			return errors.New("interrupted; what was created is destroyed")
		}
		if err != nil {
			return fmt.Errorf("%s: %w", part.name, err)
		}
		fmt.Fprintf(out, "\n%s\n\n", part.title)
		for _, section := range sections {
			fmt.Fprint(out, section)
		}
	}
	return nil
}

// prepare provides everything that measuring parts need, and prints what they are measured with.
func (b *bench) prepare(ctx context.Context) error {
	if b.tf == "" || b.provider == "" || b.bare == "" || b.gpus.agent == "" || b.member == "" || b.trainer == "" ||
		b.work == "" || b.runs < 1 {
		return errors.New("-tf, -provider, -bare, -agent, -member, -trainer and -work are needed, and at least one " +
			"run: start it with internal/bench/run.sh")
	}
	if err := b.install(ctx); err != nil {
		return err
	}
	version, err := b.version(ctx)
	if err != nil {
		return err
	}
	fmt.Fprintf(b.out, "%s, %d CPUs; medians of %d runs (least – most)\n", version, runtime.NumCPU(), b.runs)
	return nil
}

// install puts the provider, with an agent beside it, into a filesystem mirror for Terraform, with a version above all
// released ones.
func (b *bench) install(ctx context.Context) error {
	binary, err := os.ReadFile(b.provider)
	if err != nil {
		return err
	}
	bare, err := os.ReadFile(b.bare)
	if err != nil {
		return err
	}
	agent, err := b.agentWithGPUs(ctx)
	if err != nil {
		return err
	}
	mirror := filepath.Join(b.work, "mirror")
	for provider, files := range map[string]map[string][]byte{
		"trainyard": {"terraform-provider-trainyard_v" + mirrored: binary, telemetry.AgentName: agent},
		"bare":      {"terraform-provider-bare_v" + mirrored: bare},
	} {
		if err := mirrorProvider(mirror, provider, files); err != nil {
			return err
		}
	}
	b.cli = filepath.Join(b.work, "cli.tfrc")
	return os.WriteFile(b.cli,
		fmt.Appendf(nil, "provider_installation {\n  filesystem_mirror {\n    path = %q\n  }\n}\n", mirror), 0o600)
}

// mirrored is the version of the installed providers.
const mirrored = "999.0.0"

// mirrorProvider writes a provider's files where Terraform and OpenTofu look for them.
func mirrorProvider(mirror, name string, files map[string][]byte) error {
	for _, host := range []string{"registry.terraform.io", "registry.opentofu.org"} {
		dir := filepath.Join(mirror, host, "trainyard", name, mirrored, runtime.GOOS+"_"+runtime.GOARCH)
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
		for file, content := range files {
			if err := os.WriteFile(filepath.Join(dir, file), content, 0o755); err != nil {
				return err
			}
		}
	}
	return nil
}

// say prints what is being measured.
func (b *bench) say(format string, args ...any) {
	fmt.Fprintf(b.progress, "… "+format+"\n", args...)
}
