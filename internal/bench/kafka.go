//go:build linux

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/trainyard/terraform-provider-trainyard/internal/autoscale"
	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
)

const (
	// kafkaStep is the interval of the trace on which rules are tuned.
	kafkaStep = 5 * time.Second
	// kafkaDays is the trace's length in days.
	kafkaDays = 30
	// kafkaLeast and kafkaMost limit the number of brokers. kafkaCPUs is small enough for all of them to fit into two
	// processors.
	kafkaLeast, kafkaMost = 3, 6
	kafkaCPUs             = 0.3
	// kafkaBusy is the fraction of a broker's maximum rate within kafkaBound that counts as its capacity. The load
	// ranges from the capacity of kafkaBase brokers to that of kafkaPeak.
	kafkaBusy            = 0.75
	kafkaBase, kafkaPeak = 2, 5
	// kafkaBound is the allowed latency of producing a record in milliseconds, for 99 % of the records in each second.
	kafkaBound = 500
)

// kafkaRule is a way to choose the number of brokers: attributes of the module kafka, and possibly a model.
type kafkaRule struct {
	name, setting string
	begin         int // initial number of brokers
	attributes    string
	model         string
}

// kafka runs a day of real brokers for a static count, and for each policy that the part learned compares. The policies
// are first trained and tuned on a load of the same shape.
func (b *bench) kafka(ctx context.Context) ([]fmt.Stringer, error) {
	k, err := b.newKafka(ctx)
	if err != nil {
		return nil, err
	}
	carried, err := k.carried(ctx)
	if err != nil {
		return nil, err
	}
	b.say("kafka: a broker carries %.0f records a second", carried)
	r, err := kafkaLesson(carried, b.day).teach(ctx, learnedSeeds, b.updates, b.say)
	if err != nil {
		return nil, err
	}
	rules := []kafkaRule{staticBrokers(kafkaMost)}
	for _, p := range r.pupils {
		rules = append(rules, p.onBrokers())
	}
	var days []kafkaOutcome
	for _, rule := range rules {
		b.say("kafka: a day by %s, %s", rule.name, rule.setting)
		day, err := k.carry(ctx, rule, []string{
			"-shape", "day", "-base", decimal(kafkaBase * carried), "-peak", decimal(kafkaPeak * carried),
			"-period", b.day.String(), "-duration", b.day.String(),
		})
		if err != nil {
			return nil, fmt.Errorf("%s: %w", rule.name, err)
		}
		b.say("kafka: %.1f broker-minutes, %d seconds over %d ms, %s moved, %d changes", day.brokers.Minutes(),
			day.late(), kafkaBound, mebibytes(day.moved), day.changes)
		days = append(days, day)
	}
	return kafkaTables(carried, b.day, rules, days), nil
}

// kafkaBench is what all days share.
type kafkaBench struct {
	*bench

	libs     string // the folder with Kafka's jars
	programs string // the folder with the rebalancer and the load
}

func (b *bench) newKafka(ctx context.Context) (*kafkaBench, error) {
	k := &kafkaBench{bench: b, programs: filepath.Join(b.work, "programs")}
	install := exec.CommandContext(ctx, "internal/tools/kafka.sh")
	install.Stderr = b.progress
	libs, err := install.Output()
	if err != nil {
		return nil, fmt.Errorf("the jars of Kafka can't be installed: %w", err)
	}
	k.libs = strings.TrimSpace(string(libs))
	build := exec.CommandContext(ctx, "go", "build", "-o", k.programs+"/", "./modules/kafka/rebalancer",
		"./modules/kafka/load")
	build.Stderr = b.progress
	if err := build.Run(); err != nil {
		return nil, fmt.Errorf("the rebalancer and the load can't be built: %w", err)
	}
	return k, nil
}

// kafkaRamp is how long the load grows that finds the brokers' maximum rate; kafkaRampPeak, in records per second,
// exceeds that rate.
const (
	kafkaRamp     = 3 * time.Minute
	kafkaRampPeak = 1200
	// kafkaSettled is for how many consecutive seconds brokers have to keep within kafkaBound. Saturated brokers still
	// do so for a few, as they take larger batches.
	kafkaSettled = 15
)

// carried measures how many records per second a broker carries: kafkaBusy of the most that it takes within the bound.
// All brokers that a rule may have run meanwhile, as they share this machine's processors with the load.
func (k *kafkaBench) carried(ctx context.Context) (float64, error) {
	k.say("kafka: what %d brokers take", kafkaMost)
	day, err := k.carry(ctx, staticBrokers(kafkaMost), []string{
		"-shape", "ramp", "-base", "50", "-peak", decimal(kafkaRampPeak), "-period", kafkaRamp.String(), "-duration",
		kafkaRamp.String(),
	})
	if err != nil {
		return 0, err
	}
	return math.Round(kafkaBusy * day.most() / kafkaMost), nil
}

// most returns the highest demand, in records per second, at the start of kafkaSettled seconds without late records.
func (o kafkaOutcome) most() float64 {
	best := 0.0
	for window := range slices.Chunk(o.seconds, kafkaSettled) {
		if len(window) == kafkaSettled && !slices.ContainsFunc(window, kafkaSecond.late) {
			best = max(best, window[0].Wanted)
		}
	}
	return best
}

// kafkaLesson is the load, many days with noise, on which models are trained and rules tuned.
func kafkaLesson(carried float64, day time.Duration) lesson {
	days := func(seed uint64) autoscale.Trace {
		random := rand.New(rand.NewPCG(seed, 0)) //nolint:gosec // not a secret
		t := autoscale.Trace{Start: time.Date(2026, time.March, 2, 0, 0, 0, 0, time.UTC), Step: kafkaStep}
		for i := range int(kafkaDays * day / kafkaStep) {
			of := (1 - math.Cos(2*math.Pi*float64(time.Duration(i)*kafkaStep)/float64(day))) / 2
			t.Load = append(t.Load, carried*(kafkaBase+(kafkaPeak-kafkaBase)*of)*(1+0.03*random.NormFloat64()))
		}
		return t
	}
	l := newLesson("kafka", days(1), carried, days(2))
	l.problem.Min, l.problem.Max = kafkaLeast, kafkaMost
	return l
}

// staticBrokers is a rule with a constant count.
func staticBrokers(count int) kafkaRule {
	return kafkaRule{name: fmt.Sprintf("static, %d", count), begin: count, attributes: fmt.Sprintf(
		"  autoscale  = { min = %[1]d, max = %[1]d, load = { url = local.load }, algorithm = { target = { value "+
			"= 1 } } }\n",
		count,
	)}
}

// onBrokers converts a pupil's policy to attributes of the module.
func (p pupil) onBrokers() kafkaRule {
	rule := kafkaRule{name: p.name, setting: p.setting, begin: kafkaLeast}
	still := func(d *domain.Duration) string {
		if d == nil {
			return "0s"
		}
		return time.Duration(*d).String()
	}
	load, algorithm := "load = { url = local.load }", ""
	for _, metric := range p.policy.Metrics {
		switch a := metric.Algorithm; {
		case a.Target != nil:
			algorithm = fmt.Sprintf("target = { value = %s }", decimal(a.Target.Value))
		case a.Heat != nil:
			// Heat follows processor utilisation, which is kafkaBusy for a broker at its capacity.
			load, algorithm = `window = "15s"`,
				fmt.Sprintf("heat = { lower = %s, upper = %s, target = %s, recurrence = %d }",

					decimal(kafkaBusy*a.Heat.Lower), decimal(kafkaBusy*a.Heat.Upper), decimal(kafkaBusy*a.Heat.Target),
					a.Heat.Recurrence)
		case a.Risk != nil:
			algorithm = fmt.Sprintf("risk = { percent = %s, capacity = %s }", decimal(a.Risk.Percent),
				decimal(a.Risk.Capacity))
		case a.Learned != nil:
			rule.model = a.Learned.Model.Text
			algorithm = fmt.Sprintf(`learned = { model = file("%s"), capacity = %s }`, kafkaModel,
				decimal(a.Learned.Capacity))
		}
	}
	rule.attributes = fmt.Sprintf(`  autoscale = {
    min                  = %d
    max                  = %d
    interval             = "%s"
    cooldown             = "%s"
    stabilisation_window = "%s"
    algorithm            = { %s }
    %s
  }
`, kafkaLeast, kafkaMost, still(p.policy.Interval), still(p.policy.ScaleOut.Cooldown),
		still(p.policy.ScaleIn.Stabilisation), algorithm, load)
	return rule
}

// kafkaModel is the model's file, beside the configuration.
const kafkaModel = "model.json"

// decimal formats a number for command lines and Terraform.
func decimal(n float64) string { return fmt.Sprintf("%.4g", n) }

// write writes the configuration for a rule into a workspace.
func (k *kafkaBench) write(w *workspace, rule kafkaRule) error {
	if rule.model != "" {
		if err := os.WriteFile(filepath.Join(w.dir, kafkaModel), []byte(rule.model), 0o600); err != nil {
			return err
		}
	}
	if err := os.CopyFS(filepath.Join(w.dir, "modules"), os.DirFS("modules")); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(w.dir, "main.tf"), fmt.Appendf(nil, `
terraform {
  required_providers {
    trainyard = { source = "trainyard/trainyard" }
  }
}

locals {
  load = "http://%s/status"
}

resource "trainyard_cluster" "bench" {
  name = "bench"
}

module "kafka" {
  source     = "./modules/kafka"
  cluster    = trainyard_cluster.bench
  libs       = "%s"
  env        = { JDK_JAVA_OPTIONS = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC" }
  controller = { port = 18192, heap_mib = 192 }
  broker     = { port = %d, heap_mib = 384, resources = { cpus = %g } }
  rebalancer = { program = "%s", port = %d, throttle_mib = 10 }
%s}
`, kafkaLoadAt, k.libs, kafkaPort, kafkaCPUs, filepath.Join(k.programs, "rebalancer"), kafkaRebalancerPort,
		rule.attributes), 0o600)
}

// kafkaSecond is one second in the report of a load.
type kafkaSecond struct {
	Wanted       float64 `json:"wanted"`
	Acknowledged float64 `json:"acknowledged"`
	P99          float64 `json:"p99_ms"`
}

// late reports whether records exceeded the allowed latency, or none was acknowledged.
func (s kafkaSecond) late() bool { return s.P99 > kafkaBound || s.Wanted >= 1 && s.Acknowledged == 0 }

// kafkaReport is the final report of a load.
type kafkaReport struct {
	Acknowledged float64       `json:"acknowledged"`
	Seconds      []kafkaSecond `json:"seconds"`
}

func parseKafkaReport(text []byte) (r kafkaReport, err error) {
	if err = json.Unmarshal(text, &r); err == nil && r.Acknowledged == 0 {
		err = fmt.Errorf("no record was acknowledged")
	}
	return r, err
}
