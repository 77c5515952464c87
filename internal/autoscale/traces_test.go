package autoscale

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

var hourly = Shape{Start: midnight, Step: time.Hour, Length: 24 * time.Hour, Base: 10, Peak: 110}

func TestGeneratedLoads(t *testing.T) {
	minutely := Shape{Start: midnight, Step: time.Minute, Length: 4 * time.Minute, Base: 10, Peak: 20}
	for name, test := range map[string]struct {
		trace Trace
		want  map[int]float64
		rows  int
	}{
		"a day": {Diurnal(hourly), map[int]float64{0: 10, 6: 60, 12: 110, 18: 60, 23: 11.7037}, 24},
		"a day from noon": {
			Diurnal(Shape{Start: midnight.Add(12 * time.Hour), Step: time.Hour, Length: time.Hour, Base: 1, Peak: 2}),
			map[int]float64{0: 2}, 1,
		},
		"steps":            {StepLoad(minutely, 2*time.Minute), map[int]float64{0: 10, 1: 10, 2: 20, 3: 20}, 4},
		"steps of no time": {StepLoad(minutely, 0), map[int]float64{0: 10}, 4},
		"a crowd": {
			FlashCrowd(hourly, 2*time.Hour, 4*time.Hour, time.Hour),
			map[int]float64{0: 10, 2: 10, 4: 60, 6: 110, 7: 60, 8: 35}, 24,
		},
		"a crowd at once":       {FlashCrowd(hourly, time.Hour, 0, 0), map[int]float64{0: 10, 1: 110, 2: 10}, 24},
		"bursts that never end": {Bursty(hourly, time.Minute, 1e6*time.Hour), map[int]float64{10: 110}, 24},
		"no bursts":             {Bursty(hourly, 1e6*time.Hour, time.Hour), map[int]float64{10: 10, 23: 10}, 24},
		"bursts at no time":     {Bursty(minutely, 0, 0), map[int]float64{}, 4},
		"a length of no step": {
			Diurnal(Shape{Start: midnight, Step: 2, Length: 3, Base: 1, Peak: 1}), map[int]float64{0: 1, 1: 1}, 2,
		},
		"no step": {Diurnal(Shape{Start: midnight, Length: time.Hour, Base: 1, Peak: 1}), nil, 0},
		"a base above the peak": {
			StepLoad(Shape{Start: midnight, Step: 1, Length: 2, Base: 2, Peak: 1}, 1), map[int]float64{0: 2, 1: 1}, 2,
		},
		"noise that knows no end": {
			Diurnal(Shape{Start: midnight, Step: time.Hour, Length: 99 * time.Hour, Noise: 100}), map[int]float64{5: 0},
			99,
		},
	} {
		t.Run(name, func(t *testing.T) {
			if len(test.trace.Load) != test.rows || test.trace.Lost != nil {
				t.Fatalf("%d values and %d that may be lost, want %d and none", len(test.trace.Load),
					len(test.trace.Lost), test.rows)
			}
			for i, want := range test.want {
				if got := test.trace.Load[i]; math.Abs(got-want) > 1e-3 {
					t.Errorf("value %d is %v, want %v", i, got, want)
				}
			}
			for i, load := range test.trace.Load {
				if !(load >= 0) {
					t.Errorf("value %d is %v", i, load)
				}
			}
		})
	}
}

func TestGeneratedLoadsAreDeterministic(t *testing.T) {
	shape := Shape{Start: midnight, Step: time.Minute, Length: 24 * time.Hour, Base: 10, Peak: 110, Noise: 0.1, Seed: 7}
	lossy := func(s Shape) Trace { return Bursty(s, time.Hour, 10*time.Minute).Losing(0.1, s.Seed) }
	if diff := cmp.Diff(lossy(shape), lossy(shape)); diff != "" {
		t.Errorf("the same shape makes different loads:\n%s", diff)
	}
	other := shape
	other.Seed = 8
	if cmp.Equal(lossy(shape).Load, lossy(other).Load) || cmp.Equal(lossy(shape).Lost, lossy(other).Lost) {
		t.Error("different seeds make the same load")
	}
	// PCG's numbers are the same on all machines, and so are the traces of benchmarks.
	if got := fmt.Sprintf("%.4f", lossy(shape).Load[:3]); got != "[10.4982 9.6714 9.4289]" {
		t.Errorf("the load begins with %s", got)
	}
}

func TestBurstsAreAsOftenAndLongAsAsked(t *testing.T) {
	trace := Bursty(Shape{Start: midnight, Step: time.Second, Length: 1000 * time.Hour, Peak: 1, Seed: 1}, time.Hour,
		6*time.Minute)
	var busy, bursts, before float64
	for _, load := range trace.Load {
		busy += load
		bursts += max(0, load-before)
		before = load
	}
	// Bursts come at random, so the share of time without one is e^-0.1: the chance that none has begun within the
	// duration of one.
	if share := busy / float64(len(trace.Load)); math.Abs(share-(1-math.Exp(-0.1))) > 0.01 {
		t.Errorf("there is a burst in %.1f %% of the time, want 9.5 %%", 100*share)
	}
	if math.Abs(bursts-905) > 60 {
		t.Errorf("there are %v bursts in 1000 hours, want about 905", bursts)
	}
}

func TestNoise(t *testing.T) {
	const values = 20_000
	trace := StepLoad(Shape{Start: midnight, Step: 1, Length: values, Base: 100, Noise: 0.05, Seed: 1}, time.Hour)
	var sum, squares float64
	for _, load := range trace.Load {
		sum += load
		squares += (load - 100) * (load - 100)
	}
	if mean, deviation := sum/values, math.Sqrt(squares/values); math.Abs(mean-100) > 0.2 ||
		math.Abs(deviation-5) > 0.2 {
		t.Errorf("the mean is %.2f and the deviation %.2f, want 100 and 5", mean, deviation)
	}
}

func TestLosing(t *testing.T) {
	trace := StepLoad(Shape{Start: midnight, Step: time.Second, Length: 10_000 * time.Second, Base: 1, Peak: 1},
		time.Hour)
	for share, want := range map[float64]int{0: 0, 0.25: 2500, 1: 10_000} {
		lost := 0
		for _, l := range trace.Losing(share, 3).Lost {
			if l {
				lost++
			}
		}
		if math.Abs(float64(lost-want)) > 150 || share == 0 && lost > 0 || share == 1 && lost < want {
			t.Errorf("%d of 10000 values are lost, want %d", lost, want)
		}
	}
	if trace.Lost != nil {
		t.Error("the trace itself has lost values")
	}
}

func TestBlind(t *testing.T) {
	trace := Diurnal(Shape{Start: midnight, Step: time.Hour, Length: 6 * time.Hour, Base: 1, Peak: 1})
	once := trace.Blind(midnight.Add(time.Hour), 2*time.Hour)
	twice := once.Blind(midnight.Add(5*time.Hour), 100*time.Hour)
	if want := []bool{false, true, true, false, false, false}; !slices.Equal(once.Lost, want) {
		t.Errorf("lost are %v, want %v", once.Lost, want)
	}
	if want := []bool{false, true, true, false, false, true}; !slices.Equal(twice.Lost, want) {
		t.Errorf("lost are %v, want %v", twice.Lost, want)
	}
}

func TestReadCSV(t *testing.T) {
	eight := midnight.Add(8 * time.Hour)
	for name, test := range map[string]struct {
		text string
		want Trace
		// fault is a part of the error; "" if there is none.
		fault string
	}{
		"with names": {
			"time,load\n2026-03-02T08:00:00Z,1\n2026-03-02T08:00:15Z,2.5\n",
			Trace{eight, 15 * time.Second, []float64{1, 2.5}, nil}, "",
		},
		"without names": {
			"2026-03-02T08:00:00Z,1\n2026-03-02T08:00:15Z,0\n", Trace{eight, 15 * time.Second, []float64{1, 0}, nil},
			"",
		},
		"in seconds": {
			"1772438400,1\n1772438400.5,1e3\n1772438401,2\n", Trace{eight, time.Second / 2, []float64{1, 1000, 2}, nil},
			"",
		},
		"from elsewhere": {
			"\ufeff\"time\", load\r\n# a remark\r\n\r\n1772438400, 1 \r\n1772438460, 2\r\n",
			Trace{eight, time.Minute, []float64{1, 2}, nil}, "",
		},
		"with lost loads": {
			"1772438400,1\n1772438460,\n1772438520,3\n",
			Trace{eight, time.Minute, []float64{1, 1, 3}, []bool{false, true, false}}, "",
		},
		"uneven within 1 %": {
			"1772438400,1\n1772438500,2\n1772438599,3\n1772438700,4\n",
			Trace{eight, 100 * time.Second, []float64{1, 2, 3, 4}, nil}, "",
		},
		"uneven": {
			"1772438400,1\n1772438500,2\n1772438598,3\n", Trace{},
			"line 3: the row is 1m38s after the previous one, but the first step was 1m40s",
		},
		"a row left out": {
			"1772438400,1\n1772438500,2\n1772438700,3\n", Trace{}, "line 3: the row is 3m20s after",
		},
		"backwards": {
			"time,load\n1772438400,1\n1772438300,2\n", Trace{},
			"line 3: time 2026-03-02T07:58:20Z is not after that of the previous row, 2026-03-02T08:00:00Z",
		},
		"the same time": {"1772438400,1\n1772438400,2\n", Trace{}, "line 2: time 2026"},
		"negative": {
			"1772438400,1\n1772438500,-2\n", Trace{}, `line 2: invalid load "-2"; it must be 0 or more`,
		},
		"not a number":     {"1772438400,1\n1772438500,NaN\n", Trace{}, `line 2: invalid load "NaN"`},
		"infinite":         {"1772438400,1\n1772438500,inf\n", Trace{}, `line 2: invalid load "inf"`},
		"too large":        {"1772438400,1\n1772438500,1e999\n", Trace{}, `line 2: invalid load "1e999"`},
		"a word":           {"1772438400,1\n1772438500,much\n", Trace{}, `line 2: invalid load "much"`},
		"no time":          {"1772438400,1\ntomorrow,2\n", Trace{}, `line 2: invalid time "tomorrow"; use RFC 3339`},
		"no time at first": {"tomorrow,2\n", Trace{}, `line 1: invalid time "tomorrow"`},
		"before 1970":      {"-1,2\n", Trace{}, `line 1: time "-1" is out of range; use 0 to 8589934591 seconds`},
		"no date":          {"NaN,2\n", Trace{}, `line 1: time "NaN" is out of range`},
		"the far future": {
			"2300-01-01T00:00:00Z,2\n", Trace{},
			"line 1: time \"2300-01-01T00:00:00Z\" is out of range; use the years 1970 to 2241",
		},
		"the first lost": {
			"1772438400,\n1772438500,2\n", Trace{eight, 100 * time.Second, []float64{2, 2}, []bool{true, false}}, "",
		},
		"all lost":      {"1772438400,\n1772438500,\n", Trace{}, "the trace has no known values"},
		"three columns": {"1772438400,1\n1772438500,2,3\n", Trace{}, "line 2: wrong number of fields"},
		"one column":    {"1772438400\n", Trace{}, "line 1: wrong number of fields"},
		"an open quote": {"1772438400,\"1\n", Trace{}, "two columns, time and load"},
		"a single row": {
			"1772438400,1\n", Trace{}, "at least two rows, as the time between them is its step; there are 1",
		},
		"nothing":            {"", Trace{}, "there are 0"},
		"names twice":        {"time,load\ntime,load\n", Trace{}, `line 2: invalid time "time"`},
		"quotes over a line": {"\"time\n\",load\n1772438400,x\n", Trace{}, "line 3: invalid load"},
		"a zone of the world": {
			"2026-03-02T09:00:00+01:00,1\n2026-03-02T09:01:00+01:00,1\n",
			Trace{eight, time.Minute, []float64{1, 1}, nil}, "",
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := ReadCSV(strings.NewReader(test.text))
			if test.fault != "" {
				if err == nil || !strings.Contains(err.Error(), test.fault) {
					t.Errorf("the error is %v, want one with %q", err, test.fault)
				}
			} else if err != nil {
				t.Error(err)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("the trace (-want +got):\n%s", diff)
			}
		})
	}
}

// rows is a file with endless rows.
type rows struct{ next int }

func (r *rows) Read(p []byte) (n int, err error) {
	var text []byte
	for len(text) < 4096 && len(text) < len(p)-16 {
		text = append(strconv.AppendInt(text, int64(r.next), 10), ",1\n"...)
		r.next++
	}
	return copy(p, text), nil
}

func TestReadCSVBoundsRows(t *testing.T) {
	if _, err := ReadCSV(&rows{}); err == nil ||
		!strings.Contains(err.Error(), "line 2000001: the trace has more than 2000000 rows") {
		t.Errorf("the error about too many rows is %v", err)
	}
	if _, err := ReadCSV(io.MultiReader(strings.NewReader("1772438400,1\n"),
		io.LimitReader(&rows{}, 1<<20))); err == nil {
		t.Error("rows that go back in time are taken")
	}
}

func FuzzReadCSV(f *testing.F) {
	f.Add("time,load\n2026-03-02T08:00:00Z,1\n2026-03-02T08:00:15Z,\n2026-03-02T08:00:30Z,2.5\n")
	f.Add("1772438400,1\n1772438400.5,1e3\n")
	f.Add("\ufeff# a remark\n\"0\",\" 1\"\r\n1,\n")
	f.Add("0,1\n8589934591,1e308\n")
	f.Fuzz(func(t *testing.T, text string) {
		trace, err := ReadCSV(strings.NewReader(text))
		if err != nil {
			if trace.Load != nil {
				t.Errorf("there is a trace beside the error %v", err)
			}
			return
		}
		if len(trace.Load) < 2 || trace.Step <= 0 || trace.Lost != nil && len(trace.Lost) != len(trace.Load) {
			t.Fatalf("the trace is %+v", trace)
		}
		var again strings.Builder
		for i, load := range trace.Load {
			if !(load >= 0) || math.IsInf(load, 0) {
				t.Fatalf("load %d is %v", i, load)
			}
			cell := strconv.FormatFloat(load, 'g', -1, 64)
			if trace.Lost != nil && trace.Lost[i] {
				cell = ""
			}
			fmt.Fprintf(&again, "%s,%s\n", trace.Start.Add(time.Duration(i)*trace.Step).Format(time.RFC3339Nano), cell)
		}
		same, err := ReadCSV(strings.NewReader(again.String()))
		if err != nil {
			t.Fatalf("a trace that was written is not read again: %v\n%s", err, again.String())
		}
		if diff := cmp.Diff(trace, same); diff != "" {
			t.Errorf("a trace that was written and read again (-before +after):\n%s", diff)
		}
	})
}
