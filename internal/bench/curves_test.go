//go:build linux

package main

import (
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/trainyard/terraform-provider-trainyard/internal/autoscale"
)

// hours returns a load with one value per hour.
func hours(values ...float64) load {
	return load{
		name: "hours", capacity: 1, trace: autoscale.Trace{Start: time.Unix(0, 0), Step: time.Hour, Load: values},
	}
}

func TestConstantCount(t *testing.T) {
	tr := trial{hours(0, 1, 2, 3, 4, 4, 4, 8), 2}
	for members, want := range map[int]fate{
		1: {percent: 62.5, memberHours: 8}, 2: {percent: 12.5, memberHours: 16}, 4: {memberHours: 32},
	} {
		if got := tr.constant(members); got != want {
			t.Errorf("with %d members it is %+v, want %+v", members, got, want)
		}
	}
	if got := tr.needed(); got != 1+1+1+2+2+2+2+4 {
		t.Errorf("it needs %g member-hours", got)
	}
}

func TestUnbeaten(t *testing.T) {
	of := func(points ...fate) curve { return curve{points: points} }
	all := []curve{
		of(fate{percent: 1, memberHours: 10}, fate{percent: 2, memberHours: 10}),
		of(fate{percent: 0, memberHours: 20}, fate{percent: 1, memberHours: 10}),
	}
	for point, want := range map[fate]bool{
		{percent: 1, memberHours: 10}: true, {percent: 2, memberHours: 10}: false, {percent: 0, memberHours: 20}: true,
		{percent: 0, memberHours: 21}: false, {percent: 3, memberHours: 9}: true,
	} {
		if got := point.unbeaten(all); got != want {
			t.Errorf("%+v is unbeaten: %t", point, got)
		}
	}
}

// TestField: each table has a row for each setting, and the chart a panel for each load.
func TestField(t *testing.T) {
	var values []float64
	for i := range 500 {
		values = append(values, 100*(2+math.Sin(float64(i)/29)))
	}
	values[250] = 500 // which can't be forecast
	calm := hours(values...)
	calm.name = "calm"
	f, err := newField("two loads", []load{calm, hours(slices.Repeat([]float64{10, 100, 10, 10, 10}, 100)...)})
	if err != nil {
		t.Fatal(err)
	}
	settings := 0
	for _, c := range contenders {
		settings += len(c.values)
	}
	points := f.pointsTable()
	if got, want := len(points.rows), 2*(1+settings); got != want {
		t.Errorf("there are %d points, want %d", got, want)
	}
	if got := len(f.settingsTable().rows); got != settings {
		t.Errorf("there are %d settings, want %d", got, settings)
	}
	if unbeaten := slices.ContainsFunc(points.rows, func(row []string) bool { return row[5] == "yes" }); !unbeaten {
		t.Error("all points are beaten")
	}
	// Settings with fewer members have too few for longer.
	for i, curves := range f.curves {
		for _, c := range curves[:2] {
			if first, last := c.points[0], c.points[len(c.points)-1]; first.memberHours <= last.memberHours ||
				first.percent > last.percent {
				t.Errorf("%s, %s: %+v is before %+v", f.trials[i].load.name, c.name, first, last)
			}
		}
	}
	chart := f.chart()
	if len(chart.Panels) != 2 || chart.Panels[0].Title != "calm" || len(chart.Panels[0].Curves) != len(contenders)-1 {
		t.Errorf("the chart has %d panels", len(chart.Panels))
	}
	// The output is deterministic.
	again, err := newField("two loads", []load{calm, f.trials[1].load})
	if err != nil || again.pointsTable().String() != points.String() || again.chart().SVG() != chart.SVG() {
		t.Errorf("it is another one the second time: %v", err)
	}
}

// TestHindsight: where none of an algorithm's settings is good enough, the cheapest constant count that is counts.
func TestHindsight(t *testing.T) {
	one := trial{hours(slices.Repeat([]float64{1}, 100)...), 1}
	f := field{trials: []trial{one, one}}
	for _, byTarget := range []fate{{percent: 1, memberHours: 110}, {percent: 50, memberHours: 10}} {
		curves := []curve{
			{points: []fate{{memberHours: 300}, {percent: 1.25, memberHours: 200}}}, {points: []fate{byTarget}},
		}
		f.curves = append(f.curves, append(curves, make([]curve, len(contenders)-2)...))
	}
	rows := f.hindsightTable().rows
	for i, want := range [][]string{{"2.00 ×", "2 of 2"}, {"1.55 ×", "1 of 2"}, {"none", "0 of 2"}} {
		if got := rows[i][1:3]; !slices.Equal(got, want) {
			t.Errorf("%s takes %q, want %q", rows[i][0], got, want)
		}
	}
}

// TestCurveColours: each colour has a contrast of at least 3:1, as WCAG requires for graphics, to white and to GitHub's
// dark background.
func TestCurveColours(t *testing.T) {
	luminance := func(colour string) float64 {
		sum := 0.0
		for i, weight := range []float64{0.2126, 0.7152, 0.0722} {
			n, err := strconv.ParseUint(colour[1+2*i:3+2*i], 16, 8)
			if err != nil {
				t.Fatal(err)
			}
			part := float64(n) / 255
			if part <= 0.04045 {
				sum += weight * part / 12.92
			} else {
				sum += weight * math.Pow((part+0.055)/1.055, 2.4)
			}
		}
		return sum
	}
	for _, colour := range []string{greyCurve, blueCurve, greenCurve, orangeCurve, violetCurve} {
		for _, ground := range []string{"#ffffff", "#0d1117"} {
			a, b := luminance(colour), luminance(ground)
			if contrast := (max(a, b) + 0.05) / (min(a, b) + 0.05); contrast < 3 {
				t.Errorf("%s has a contrast of %.1f to %s", colour, contrast, ground)
			}
		}
	}
}

// TestJobCurves: each setting has a row, jobs that don't end have no point, and the constant counts are the published
// ones.
func TestJobCurves(t *testing.T) {
	job := publishedJobs[0]
	all := job.curves()
	if got, want := len(all), 1+len(job.jobContenders()); got != want {
		t.Errorf("there are %d curves, want %d", got, want)
	}
	static := all[0]
	if got, want := static.points[1], (jobPoint{setting: "2 members", seconds: 828, memberHours: 0.46}); got != want {
		t.Errorf("two members are %+v, want %+v", got, want)
	}
	for _, c := range all {
		for i, point := range c.points {
			if point.endless != "" || point.seconds <= 0 || point.memberHours <= 0 {
				t.Errorf("%s, %s is %+v", c.line.Name, point.setting, point)
			} else if drawn := c.line.Points[i]; drawn.X != point.seconds || drawn.Y != point.memberHours {
				t.Errorf("%s, %s is drawn at %v", c.line.Name, point.setting, drawn)
			}
		}
	}
	rows := 0
	for _, job := range publishedJobs {
		rows++
		for _, c := range job.curves() {
			rows += len(c.points)
		}
	}
	if got := len(jobCurvesTable().rows); got != rows {
		t.Errorf("there are %d rows, want %d", got, rows)
	}
}

// TestDrawCurves: there is a picture for each set of loads, in the given folder or in a new one.
func TestDrawCurves(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	named := filepath.Join(t.TempDir(), "a", "b")
	for _, folder := range []string{named, ""} {
		var progress strings.Builder
		b := &bench{progress: &progress, out: io.Discard, curves: folder}
		if err := b.drawCurves(map[string]autoscale.Chart{"jobs": jobChart(), "none": {}}); err != nil {
			t.Fatal(err)
		}
		_, path, found := strings.Cut(strings.SplitAfter(progress.String(), "\n")[0], "drawn in ")
		path = strings.TrimSpace(path)
		if !found || filepath.Base(path) != "jobs.svg" || (filepath.Dir(path) == named) != (folder == named) {
			t.Fatalf("it says %q", progress.String())
		}
		if svg, err := os.ReadFile(path); err != nil || !strings.HasPrefix(string(svg), "<svg ") {
			t.Errorf("%s has %.20q: %v", path, svg, err)
		}
	}
}
