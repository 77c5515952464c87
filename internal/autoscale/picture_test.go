package autoscale

import (
	"encoding/xml"
	"errors"
	"io"
	"math"
	"slices"
	"strings"
	"testing"
	"time"
)

// readSVG returns the texts of a picture, and its paths by class. It has to be well-formed.
func readSVG(t *testing.T, svg string) (texts []string, paths map[string]string) {
	t.Helper()
	paths = map[string]string{}
	decoder := xml.NewDecoder(strings.NewReader(svg))
	for {
		token, err := decoder.Token()
		if errors.Is(err, io.EOF) {
			return texts, paths
		}
		if err != nil {
			t.Fatalf("%v in %s", err, svg)
		}
		switch token := token.(type) {
		case xml.CharData:
			if text := strings.TrimSpace(string(token)); text != "" {
				texts = append(texts, text)
			}
		case xml.StartElement:
			attributes := map[string]string{}
			for _, a := range token.Attr {
				attributes[a.Name.Local] = a.Value
				if strings.Contains(a.Value, "NaN") || strings.Contains(a.Value, "Inf") {
					t.Errorf("%s of %s is %s", a.Name.Local, token.Name.Local, a.Value)
				}
			}
			for _, name := range []string{"stroke", "fill"} {
				if colour, painted := attributes[name]; painted && colour != "none" && !strings.HasPrefix(colour, "#") {
					t.Errorf("%s of %s is %s", name, token.Name.Local, colour)
				}
			}
			if token.Name.Local == "path" {
				paths[attributes["class"]] = attributes["d"]
			}
		}
	}
}

func TestPicture(t *testing.T) {
	start := time.Date(2026, 3, 1, 8, 0, 0, 0, time.UTC)
	year := make([]float64, 525_600)
	for i := range year {
		year[i] = 500 + 400*math.Sin(float64(i)/200)*math.Cos(float64(i)/7)
	}
	members := make([]int, len(year))
	for i := range members {
		members[i] = 3 + i%7
	}
	for name, test := range map[string]struct {
		course Course
		trace  Trace
		model  Model
		paths  int
		has    []string
	}{
		"nothing": {has: []string{"Load and members: no values", "Load"}},
		"one point": {
			Course{Counts: []int{2}, Ready: []int{1}}, Trace{Start: start, Step: time.Minute, Load: []float64{70}},
			Model{Capacity: 50}, 3,
			[]string{"Load and members, 2026-03-01 08:00:00 to 2026-03-01 08:01:00 UTC", "08:00:30", "100", "2"},
		},
		"a day": {
			Course{Counts: []int{2, 4}, Ready: []int{2, 2}},
			Trace{Start: start, Step: 12 * time.Hour, Load: []float64{50_000, 120_000}}, Model{Capacity: 30_000}, 3,
			[]string{"12:00", "2 Mar", "150k", "5", "Members ordered (right axis)"},
		},
		"a year": {
			Course{Counts: members, Ready: members}, Trace{Start: start, Step: time.Minute, Load: year},
			Model{Capacity: 100}, 3,
			[]string{"May 2026", "Jan 2027"},
		},
		"a course shorter than its trace": {
			Course{Counts: []int{1}, Ready: []int{1}}, Trace{Step: time.Second, Load: []float64{1, 2, 3}},
			Model{Capacity: 1}, 3, nil,
		},
		"no members": {
			Course{}, Trace{Start: start, Step: time.Minute, Load: []float64{1, 2}}, Model{Capacity: 1}, 1, nil,
		},
		"no capacity": {
			Course{Counts: []int{1}, Ready: []int{1}}, Trace{Start: start, Step: time.Minute, Load: []float64{0}},
			Model{}, 3, nil,
		},
		"values beyond all measure": {
			Course{Counts: []int{math.MaxInt, 1, 1}, Ready: []int{1, 1, 1}},
			Trace{Start: start, Step: math.MaxInt64, Load: []float64{math.NaN(), math.Inf(1), -1}},
			Model{Capacity: math.MaxFloat64}, 3, nil,
		},
		"hardly any values": {
			Course{Counts: []int{1}, Ready: []int{1}}, Trace{Start: start, Step: 1, Load: []float64{5e-324}},
			Model{Capacity: 5e-324}, 3, nil,
		},
	} {
		t.Run(name, func(t *testing.T) {
			svg := test.course.SVG(test.trace, test.model)
			if len(svg) >= 150_000 {
				t.Errorf("it has %d bytes", len(svg))
			}
			texts, paths := readSVG(t, svg)
			if len(paths) != test.paths {
				t.Errorf("it has %d lines, want %d", len(paths), test.paths)
			}
			if len(texts) > 60 {
				t.Errorf("it has %d texts: %q", len(texts), texts)
			}
			for _, text := range test.has {
				if !slices.Contains(texts, text) {
					t.Errorf("there is no %q in %q", text, texts)
				}
			}
		})
	}
}

// TestPictureKeepsPeaks checks that a peak of one minute is as high in the picture of a year as in that of an hour, and
// that no value is drawn before its time.
func TestPictureKeepsPeaks(t *testing.T) {
	load := make([]float64, 525_600)
	load[300_000], load[300_001] = 1000, 1
	_, paths := readSVG(t, Course{}.SVG(Trace{Step: time.Minute, Load: load}, Model{Capacity: 1}))
	if d := paths["load"]; !strings.HasPrefix(d, "M64 344H") || !strings.HasSuffix(d, "H904") ||
		!strings.Contains(d, "V44H") {
		t.Errorf("the line is %s", d)
	}
	kept := thinned(load, pointsALine)
	if len(kept) > pointsALine || !slices.IsSorted(kept) || !slices.Contains(kept, 300_000) {
		t.Errorf("%d points are kept, sorted %t, the peak %t", len(kept), slices.IsSorted(kept),
			slices.Contains(kept, 300_000))
	}
}

func TestAxis(t *testing.T) {
	for highest, want := range map[float64][2]float64{
		0: {0.2, 1}, 1: {0.2, 1}, 4: {1, 4}, 7: {2, 8}, 99: {20, 100}, 100: {20, 100}, 101: {50, 150},
		0.03: {0.01, 0.03}, 260_000: {100_000, 300_000},
	} {
		step, top := axisTo(highest)
		if math.Abs(step/want[0]-1) > 1e-9 || math.Abs(top/want[1]-1) > 1e-9 {
			t.Errorf("%v: steps of %v up to %v, want %v", highest, step, top, want)
		}
	}
}

func TestTimeTicks(t *testing.T) {
	start := time.Date(2026, 3, 1, 22, 30, 0, 0, time.UTC)
	for covered, want := range map[time.Duration]string{
		time.Second / 2:        "22:30:00.000 22:30:00.100",
		time.Second:            "22:30:00 22:30:01",
		time.Minute:            "22:30:00 22:30:10 22:30:20 22:30:30 22:30:40 22:30:50 22:31:00",
		2 * time.Hour:          "22:30 22:45 23:00 23:15 23:30 23:45 2 Mar 00:15 00:30",
		24 * time.Hour:         "2 Mar 03:00 06:00 09:00 12:00 15:00 18:00 21:00",
		5 * 24 * time.Hour:     "2 Mar 3 Mar 4 Mar 5 Mar 6 Mar",
		365 * 24 * time.Hour:   "May 2026 Jul 2026 Sep 2026 Nov 2026 Jan 2027 Mar 2027",
		10 * 8766 * time.Hour:  "2028 2030 2032 2034 2036",
		200 * 8760 * time.Hour: "2040 2080 2120 2160 2200",
	} {
		var got []string
		for _, tick := range timeTicks(start, covered) {
			got = append(got, tick.label)
		}
		if text := strings.Join(got, " "); len(got) > mostTicks+1 || !strings.HasPrefix(text, want) {
			t.Errorf("%s: got %s, want %s", covered, text, want)
		}
	}
}
