package trainctl

import (
	"errors"
	"flag"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/trainyard/terraform-provider-trainyard/internal/autoscale"
	"github.com/trainyard/terraform-provider-trainyard/internal/command"
	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/qmodel"
	"github.com/trainyard/terraform-provider-trainyard/internal/train"
)

// options are the parsed arguments.
type options struct {
	trace, output, curve string
	settings             train.Settings
	// problem has no trace yet.
	problem train.Problem
}

const usage = `Trains a model for the scaling algorithm "learned" on a recorded load, in a simulator.

  terraform-provider-trainyard autoscale train --trace load.csv --capacity 100 --algorithm double-dqn --seed 7 -o dqn.json

The trace is a CSV file with two columns, time and load. Prices are in a unit of your choice: of a member-hour, of an
hour with more load than the members can carry, and of a change of the count. The same arguments give the same file.

`

// maxUpdates limits how long a training takes.
const maxUpdates = 10_000_000

func parse(args []string) (options, error) {
	o := options{settings: train.Defaults(), problem: train.Problem{
		Bound: 1, Startup: 25 * time.Second, Change: autoscale.ChangeCost{Takes: 40 * time.Second}, Min: 1, Max: 10,
		Interval: 15 * time.Second, Prices: train.DefaultPrices,
	}}
	p, lost, algorithm := &o.problem, 15.0, string(o.settings.Algorithm)
	observe := ""
	flags := flag.NewFlagSet("autoscale train", flag.ContinueOnError)
	flags.StringVar(&o.trace, "trace", "", "CSV `file` with the load to learn from; required")
	flags.StringVar(&o.output, "o", "dqn.json", "`file` to write the model to")
	flags.StringVar(&o.curve, "curve", "", "`file` to write the learning curve to, as SVG")
	flags.StringVar(&algorithm, "algorithm", algorithm, "learning `algorithm`: "+allowedAlgorithms())
	flags.Uint64Var(&o.settings.Seed, "seed", 1, "`seed` of the random numbers")
	flags.IntVar(&o.settings.Updates, "updates", o.settings.Updates, "`number` of updates of the network's weights")
	flags.Float64Var(&p.Capacity, "capacity", 0, "`load` that one member can carry, in the unit of the trace; required")
	flags.Float64Var(&p.Bound, "bound", p.Bound,
		"`share` of the capacity above which there are too few members, such as the one at which latency "+
			"exceeds its bound")
	flags.StringVar(&observe, "observe", "",
		"`features` from other metrics that the model takes, separated by commas: "+strings.Join(observable(), ", "))
	flags.DurationVar(&p.LatencyBound, "latency-bound", 0,
		"latency_bound of the policy, a `time`: the feature p99 is a share of it; required with p99")
	flags.IntVar(&p.Min, "min", p.Min, "minimum `number` of members, as in the policy")
	flags.IntVar(&p.Max, "max", p.Max, "maximum `number` of members, as in the policy")
	flags.DurationVar(&p.Interval, "interval", p.Interval, "`time` between two decisions, as in the policy")
	flags.DurationVar(&p.Startup, "startup", p.Startup, "`time` that a member takes to start")
	flags.DurationVar(&p.Change.Takes, "change-time", p.Change.Takes,
		"`time` for which data moves between members after a change; 0s if none does")
	flags.Float64Var(&lost, "change-loss", lost, "`percentage` of the capacity that is lost while data moves")
	flags.Float64Var(&p.Prices.Member, "member-price", p.Prices.Member, "`price` of a member-hour")
	flags.Float64Var(&p.Prices.Under, "under-price", p.Prices.Under, "`price` of an hour with too few members")
	flags.Float64Var(&p.Prices.Change, "change-price", p.Prices.Change, "`price` of a change of the count")
	flags.Usage = func() {
		_, _ = fmt.Fprint(flags.Output(), usage)
		flags.PrintDefaults()
	}
	words, err := command.Words(flags, args)
	if err != nil {
		return o, err
	}
	if len(words) > 0 {
		return o, fmt.Errorf("train takes only flags, got %q", words)
	}
	if observe != "" {
		p.Observes = strings.Split(observe, ",")
	}
	o.settings.Algorithm, p.Change.Lost = train.Algorithm(algorithm), lost/100
	return o, o.validate(lost)
}

// observable returns the features that are computed from other metrics.
func observable() []string { return slices.Sorted(maps.Keys(autoscale.FeatureSignals)) }

func allowedAlgorithms() string {
	var names []string
	for _, a := range train.Algorithms {
		names = append(names, string(a))
	}
	return strings.Join(names, " or ")
}

// validate returns the first thing that is wrong with the options.
func (o options) validate(lost float64) error {
	p := o.problem
	refuse := func(flag string, value any, allowed string) error {
		return fmt.Errorf("%s must be %s, got %v", flag, allowed, value)
	}
	positive := func(v float64) bool { return v > 0 && !math.IsInf(v, 0) }
	price := func(v float64) bool { return v >= 0 && !math.IsInf(v, 0) }
	const aPrice = "0 or more"
	for _, check := range []struct {
		held    bool
		flag    string
		value   any
		allowed string
	}{
		{
			slices.Contains(train.Algorithms, o.settings.Algorithm), "--algorithm",
			fmt.Sprintf("%q", o.settings.Algorithm), allowedAlgorithms(),
		},
		{
			o.settings.Updates >= 1 && o.settings.Updates <= maxUpdates, "--updates", o.settings.Updates,
			fmt.Sprintf("between 1 and %d", maxUpdates),
		},
		{positive(p.Capacity), "--capacity", p.Capacity, "above 0, the load that one member can carry"},
		{p.Bound > 0 && p.Bound <= 1, "--bound", p.Bound, "above 0 and at most 1"},
		{
			p.Min >= 1 && p.Min <= domain.MaxReplicas, "--min", p.Min,
			fmt.Sprintf("between 1 and %d", domain.MaxReplicas),
		},
		{
			p.Max > p.Min && p.Max <= domain.MaxReplicas, "--max", p.Max,
			fmt.Sprintf("above --min (%d) and at most %d", p.Min, domain.MaxReplicas),
		},
		{
			p.Interval >= domain.MinScalingInterval && p.Interval <= domain.MaxScalingInterval, "--interval",
			p.Interval, fmt.Sprintf("between %s and %s", domain.MinScalingInterval, domain.MaxScalingInterval),
		},
		{p.Startup >= 0 && p.Startup <= time.Hour, "--startup", p.Startup, "between 0s and 1h0m0s"},
		{p.Change.Takes >= 0 && p.Change.Takes <= time.Hour, "--change-time", p.Change.Takes, "between 0s and 1h0m0s"},
		{lost >= 0 && lost < 100, "--change-loss", lost, "at least 0 percent and below 100"},
		{price(p.Prices.Member), "--member-price", p.Prices.Member, aPrice},
		{price(p.Prices.Under), "--under-price", p.Prices.Under, aPrice},
		{price(p.Prices.Change), "--change-price", p.Prices.Change, aPrice},
		{p.Prices.Member > 0 || p.Prices.Under > 0, "--member-price or --under-price", 0, "above 0"},
		{o.output != "", "-o", `""`, "the path of a file"},
	} {
		if !check.held {
			return refuse(check.flag, check.value, check.allowed)
		}
	}
	for i, feature := range p.Observes {
		if !slices.Contains(observable(), feature) || slices.Contains(p.Observes[:i], feature) {
			return refuse("--observe", fmt.Sprintf("%q", feature),
				"one of "+strings.Join(observable(), ", ")+", each at most once")
		}
	}
	if takes := slices.Contains(p.Observes, qmodel.Features[qmodel.P99].Name); takes != (p.LatencyBound > 0) {
		return refuse("--latency-bound", p.LatencyBound, "above 0s if --observe includes p99, and 0s otherwise")
	}
	if o.trace == "" {
		return errors.New("--trace is required: the path of a CSV file with the load to learn from, as time and load")
	}
	return nil
}
