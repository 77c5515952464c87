// Package trainctl is the command "autoscale train", which trains a model for the scaling algorithm "learned".
package trainctl

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"

	"github.com/trainyard/terraform-provider-trainyard/internal/autoscale"
	"github.com/trainyard/terraform-provider-trainyard/internal/command"
	"github.com/trainyard/terraform-provider-trainyard/internal/train"
)

// Run trains as the arguments say, and writes the model. An interrupted training writes nothing.
func Run(ctx context.Context, args []string, out io.Writer) error {
	o, err := parse(args)
	if errors.Is(err, flag.ErrHelp) {
		return nil
	}
	if err != nil {
		return err
	}
	digest, err := o.read()
	if err != nil {
		return err
	}
	for _, file := range []string{o.output, o.curve} { // fail before the training, not after it
		if err := command.CheckFile(file); file != "" && err != nil {
			return err
		}
	}
	o.warn(out)
	progress, done := reporter(out, o.settings.Updates), 0
	began := time.Now()
	learned, err := train.Learn(ctx, o.problem, o.settings, digest, func(updates int, newest train.Point) {
		done = updates
		progress(updates, newest)
	})
	if errors.Is(err, context.Canceled) {
		return fmt.Errorf("interrupted after %d of %d updates; nothing was written", done, o.settings.Updates)
	}
	if err != nil {
		return err
	}
	if err := write(o.output, learned.Text); err != nil {
		return err
	}
	if o.curve != "" { // after the model, which must not be lost if this fails
		if err := write(o.curve, o.chart(learned).SVG()); err != nil {
			return err
		}
	}
	_, err = fmt.Fprintf(out,
		"%s: %d updates over %d decisions in %s. The best policy, after %d updates, costs %.4g an hour on the trace.\n",

		o.output, o.settings.Updates, learned.Decisions, time.Since(began).Round(time.Second), learned.Best.Updates,
		learned.Best.Cost)
	return err
}

func write(file, text string) error {
	return command.WriteFile(file, func(to io.Writer) error {
		_, err := io.WriteString(to, text)
		return err
	})
}

// read reads the trace, and returns the digest of its file.
func (o *options) read() (string, error) {
	content, err := os.ReadFile(o.trace)
	if err != nil {
		return "", fmt.Errorf("--trace: %w", err)
	}
	if o.problem.Trace, err = autoscale.ReadCSV(bytes.NewReader(content)); err != nil {
		return "", fmt.Errorf("--trace %s: %w", o.trace, err)
	}
	if o.problem.Decisions() < leastDecisions {
		return "", fmt.Errorf("--trace %s: it covers %d decisions, one per --interval of %s; at least %d are required",
			o.trace, o.problem.Decisions(), o.problem.Interval, leastDecisions)
	}
	if slices.Max(o.problem.Trace.Load) == 0 {
		return "", fmt.Errorf("--trace %s: the load is always 0", o.trace)
	}
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:]), nil
}

// leastDecisions is the minimum number of decisions in a trace to learn from.
const leastDecisions = 100

// warn reports what is allowed but probably not intended.
func (o options) warn(out io.Writer) {
	p := o.problem
	if needed := math.Ceil(slices.Max(p.Trace.Load) / (p.Capacity * p.Bound)); needed > float64(p.Max) {
		_, _ = fmt.Fprintf(out, "The peak of the trace needs %.0f members; --max is %d.\n", needed, p.Max)
	}
}

// reporter returns a function that reports progress: a bar on a terminal, and a line for each point of the learning
// curve elsewhere.
func reporter(out io.Writer, updates int) func(int, train.Point) {
	if file, is := out.(*os.File); is && term.IsTerminal(int(file.Fd())) {
		bar := progressbar.NewOptions(updates, progressbar.OptionSetWriter(out), progressbar.OptionShowIts(),
			progressbar.OptionSetItsString("updates"),
			progressbar.OptionSetWidth(30),
			progressbar.OptionThrottle(100*time.Millisecond), progressbar.OptionClearOnFinish())
		return func(done int, newest train.Point) {
			bar.Describe(fmt.Sprintf("%.4g an hour", newest.Cost))
			_ = bar.Set(done)
		}
	}
	last := -1
	return func(_ int, newest train.Point) {
		if newest.Updates != last {
			last = newest.Updates
			_, _ = fmt.Fprintf(out, "%d of %d updates: the policy costs %.4g an hour\n", newest.Updates, updates,
				newest.Cost)
		}
	}
}

// chart returns the learning curve as a chart.
func (o options) chart(l train.Learned) autoscale.Chart {
	cost, errs := autoscale.Curve{
		Name: "cost of the policy", Colour: "#0072b2",
	}, autoscale.Curve{Name: "error of the values", Colour: "#d55e00"}
	for _, point := range l.Curve {
		at := float64(point.Updates)
		cost.Points = append(cost.Points, autoscale.ChartPoint{X: at, Y: point.Cost})
		errs.Points = append(errs.Points, autoscale.ChartPoint{X: at, Y: point.Error})
	}
	return autoscale.Chart{
		Title: fmt.Sprintf("%s with seed %d on %s", o.settings.Algorithm, o.settings.Seed, filepath.Base(o.trace)),
		X:     "updates", Y: "",
		Panels: []autoscale.Panel{
			{
				Title: "Cost an hour on the trace, without random actions", Top: min(3*l.Best.Cost, l.Curve[0].Cost*2),
				Curves: []autoscale.Curve{cost},
			},
			{Title: "Mean error of the values, in intervals with too few members", Curves: []autoscale.Curve{errs}},
		},
	}
}
