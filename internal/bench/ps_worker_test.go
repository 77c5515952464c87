//go:build linux

package main

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestKnee(t *testing.T) {
	for name, test := range map[string]struct {
		rates []float64
		want  int
	}{
		"as published":     {[]float64{20, 38, 54, 68, 74, 73}, 5},
		"none":             {[]float64{20, 40, 60}, 3},
		"at once":          {[]float64{20, 21, 60}, 1},
		"one count":        {[]float64{20}, 1},
		"at the threshold": {[]float64{20, 25}, 1},
	} {
		if got := kneeOf(test.rates, 0.25); got != test.want {
			t.Errorf("%s: the knee of %v is %d, want %d", name, test.rates, got, test.want)
		}
	}
}

// Steps count from the last worker's first one on.
func TestRateOfAll(t *testing.T) {
	chief := []trainLine{{Step: 0, Time: 10}, {Step: 10, Time: 11}, {Step: 30, Time: 12}, {Step: 70, Time: 14}}
	for name, test := range map[string]struct {
		logs [][]trainLine
		rate float64
		span time.Duration
	}{
		"of two":                       {[][]trainLine{chief, {{Step: 9, Time: 10.9}}}, 20, 3 * time.Second},
		"of one":                       {[][]trainLine{chief}, 17.5, 4 * time.Second},
		"with one that starts":         {[][]trainLine{chief, nil}, 0, 0},
		"with one that has just begun": {[][]trainLine{chief, {{Step: 70, Time: 14}}}, 0, 0},
	} {
		rate, span := rateOfAll(test.logs)
		if rate != test.rate || span != test.span {
			t.Errorf("%s: %v steps a second over %s, want %v over %s", name, rate, span, test.rate, test.span)
		}
	}
}

// The tables show the ratios within a run, and the bars.
func TestPSWorkerTables(t *testing.T) {
	p := &psWorkerBench{bench: &bench{runs: 2, training: time.Second}, rates: map[formation][]float64{}}
	for _, f := range p.formations() {
		rate := float64(20*min(f.workers, 4)) * float64(max(f.hosts, 1))
		if f.batch == psBatch && f.cpus == leanCPUs {
			rate -= float64(f.ps) // more of them take longer
		}
		p.rates[f] = []float64{rate, 2 * rate}
	}
	p.found = []psPolicy{
		{counts: []int{1, 2, 3, 4, 5, 4}, ended: true, unchanged: true},
		{counts: []int{1, 2}, ended: true},
	}
	var all strings.Builder
	for _, section := range p.tables() {
		all.WriteString(section.String())
	}
	for _, want := range []string{
		"| 2 | 18.8 (12.5 – 25.0) | 0.50 (0.50 – 0.50) | falls |\n",
		"0.3 processors and 200 examples per step**", "| 2 | 9.4 (6.2 – 12.5) | 1.00 (1.00 – 1.00) |",
		"0.3 processors and 800 examples per step**", "| 2 | 9.6 (6.4 – 12.8) | 1.01 (1.01 – 1.01) |",
		"| 3 | 3.1 (2.1 – 4.2) | 0.33 (0.33 – 0.33) | less: hosts set the limit |\n",
		"| 1 | 1 → 2 → 3 → 4 → 5 → 4 | 4 | 4 | 0 s | yes | empty |\n",
		"| 2 | 1 → 2 | 2 | 4 | 0 s | yes | not empty |\n",
		"falls to a knee: held;", "with 200 examples per step, more parameter servers take no more than 5 % longer: held;",
		"within one worker of the knee: MISSED;",
		"ends the parameter servers: held;", "the next plan is empty: MISSED.",
	} {
		if !strings.Contains(all.String(), want) {
			t.Errorf("the tables have no %q:\n%s", want, all.String())
		}
	}
	m := &markdown{title: "T", table: table{head: []string{"a", "b"}}}
	m.add("1", "2")
	if diff := cmp.Diff("**T**\n\n| a | b |\n|---|--:|\n| 1 | 2 |\n\n", m.String()); diff != "" {
		t.Errorf("a table (-want +got):\n%s", diff)
	}
}
