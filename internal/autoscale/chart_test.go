package autoscale

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
)

func TestChart(t *testing.T) {
	cheap := Curve{Name: "cheap", Colour: "#0072b2", Points: []ChartPoint{{0, 90}, {1, 40}, {100, 10}}}
	dear := Curve{Name: "dear <&>", Colour: "#d55e00", Dashes: "6 3", Points: []ChartPoint{{5, 1000}}}
	panels := func(n int) (all []Panel) {
		for i := range n {
			all = append(all, Panel{Title: fmt.Sprintf("panel %d", i), Top: 100, Curves: []Curve{cheap, dear}})
		}
		return all
	}
	for name, test := range map[string]struct {
		chart Chart
		size  string
		shown []string
		times map[string]int
	}{
		"one": {
			Chart{Title: "Costs", X: "share (%)", Y: "hours", Ticks: []float64{0, 1, 5, 20}, Panels: panels(1)},
			"0 0 960 653.2",
			[]string{"Costs", "share (%)", "hours", "panel 0", "cheap", "dear <&>", "0", "1", "5", "20", "40", "100"},
			map[string]int{"cheap": 1, "hours": 1, "1000": 0},
		},
		"four": {
			Chart{Panels: panels(4)}, "0 0 960 653.2", []string{"panel 3"}, map[string]int{"cheap": 1, "panel 3": 1},
		},
		"fourteen": {Chart{Panels: panels(14)}, "0 0 960 1050", []string{"panel 13"}, map[string]int{"dear <&>": 1}},
		"none":     {Chart{Title: "Costs"}, "0 0 960 38", []string{"Costs"}, nil},
		// Without ticks and a top, axes are as long as the curves.
		"axes of its own": {
			Chart{Panels: []Panel{{Curves: []Curve{cheap, dear}}}}, "0 0 960 653.2", []string{"1000", "60", "100"}, nil,
		},
		"no points": {
			Chart{Panels: []Panel{{Title: "empty", Curves: []Curve{{Name: "none"}}}}}, "0 0 960 653.2",
			[]string{"empty", "none", "0", "1"}, nil,
		},
		"not a number": {
			Chart{Panels: []Panel{{Curves: []Curve{{Points: []ChartPoint{{math.NaN(), math.Inf(1)}, {1, 2}}}}}}},
			"0 0 960 653.2", nil, nil,
		},
	} {
		t.Run(name, func(t *testing.T) {
			svg := test.chart.SVG()
			texts, _ := readSVG(t, svg)
			for _, want := range test.shown {
				if !slices.Contains(texts, want) {
					t.Errorf("it does not show %q, but %q", want, texts)
				}
			}
			for text, want := range test.times {
				if got := strings.Count("\n"+strings.Join(texts, "\n")+"\n", "\n"+text+"\n"); got != want {
					t.Errorf("it shows %q %d times, want %d", text, got, want)
				}
			}
			if !strings.Contains(svg, `viewBox="`+test.size+`"`) {
				t.Errorf("it is of another size than %s: %.120s", test.size, svg)
			}
			if svg != test.chart.SVG() {
				t.Error("it is another one each time")
			}
		})
	}
}

// TestChartPoints checks that points match the axes: the axis with ticks is scaled by the square root, and what is
// beyond the plot is drawn beyond its edges.
func TestChartPoints(t *testing.T) {
	curve := Curve{Name: "cost", Points: []ChartPoint{{0, 0}, {5, 50}, {20, 100}, {80, 400}}}
	_, paths := readSVG(t, Chart{Ticks: []float64{0, 5, 20}, Panels: []Panel{{Top: 100, Curves: []Curve{curve}}}}.SVG())
	// The plot is 884 wide and 503.2 high, and 4 away from the edges.
	if want := "M4 507.2L446 255.6L888 4L1772 -1505.6"; paths["line"] != want {
		t.Errorf("it is %s, want %s", paths["line"], want)
	}
	if want := "M4 507.2h0M446 255.6h0M888 4h0M1772 -1505.6h0"; paths["points"] != want {
		t.Errorf("its points are %s, want %s", paths["points"], want)
	}
}
