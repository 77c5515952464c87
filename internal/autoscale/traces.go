package autoscale

import (
	"bufio"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Shape is what generated loads have in common. The same shape always gives the same load.
type Shape struct {
	// Start is when the load begins, Step the time between two values, and Length how long it lasts: there is a value
	// for each step that begins before its end. Without a step there are none.
	Start        time.Time
	Step, Length time.Duration
	// Base and Peak are the minimum and maximum load without noise, 0 or more, in any unit.
	Base, Peak float64
	// Noise is the standard deviation of each value, as a fraction of it: 0.05 is 5 %. Loads are never below 0.
	Noise float64
	Seed  uint64
}

// Diurnal returns a load with its base at midnight and its peak at noon, in the time zone of the start, along a sine.
func Diurnal(s Shape) Trace {
	year, month, day := s.Start.Date()
	midnight := time.Date(year, month, day, 0, 0, 0, 0, s.Start.Location())
	return s.trace(func(now time.Time, _ *rand.Rand) float64 {
		return (1 - math.Cos(2*math.Pi*now.Sub(midnight).Hours()/24)) / 2
	})
}

// Bursty returns a load at its base with bursts to its peak, which come at random like calls: every is the mean time
// between the beginnings of two, and lasting the mean duration of one. Both are distributed exponentially. Bursts that
// overlap don't add up.
func Bursty(s Shape, every, lasting time.Duration) Trace {
	var next, end time.Time
	return s.trace(func(now time.Time, random *rand.Rand) float64 {
		if next.IsZero() {
			next = now.Add(exponential(random, every))
		}
		for !next.After(now) {
			if until := next.Add(exponential(random, lasting)); until.After(end) {
				end = until
			}
			// The minimum is for a mean of zero, with which the loop would never end.
			next = next.Add(max(exponential(random, every), time.Millisecond))
		}
		if now.Before(end) {
			return 1
		}
		return 0
	})
}

// StepLoad returns a load that alternates between its base, where it begins, and its peak, staying at each for a time.
func StepLoad(s Shape, lasting time.Duration) Trace {
	return s.trace(func(now time.Time, _ *rand.Rand) float64 {
		return float64(int64(now.Sub(s.Start)/max(lasting, 1)) % 2)
	})
}

// FlashCrowd returns a load at its base that, some time after the start, rises linearly to its peak and then decays,
// halving with each halving time.
func FlashCrowd(s Shape, after, rise, halving time.Duration) Trace {
	return s.trace(func(now time.Time, _ *rand.Rand) float64 {
		since := now.Sub(s.Start) - after
		switch {
		case since < 0:
			return 0
		case since < rise:
			return since.Seconds() / rise.Seconds()
		}
		return math.Exp2(-(since - rise).Seconds() / max(halving, 1).Seconds())
	})
}

// trace makes a trace. share returns how far the load is from its base to its peak, from 0 to 1, and is called for each
// moment in order.
func (s Shape) trace(share func(now time.Time, random *rand.Rand) float64) Trace {
	t := Trace{Start: s.Start, Step: s.Step}
	if s.Step <= 0 {
		return t
	}
	// Noise has its own random numbers, so that loads that differ in noise are otherwise the same.
	random, noise := rand.New(rand.NewPCG(s.Seed, 0)), rand.New(rand.NewPCG(s.Seed, 1))
	for at := time.Duration(0); at < s.Length; at += s.Step {
		load := s.Base + (s.Peak-s.Base)*share(s.Start.Add(at), random)
		t.Load = append(t.Load, max(0, load*(1+s.Noise*noise.NormFloat64())))
	}
	return t
}

// exponential returns an exponentially distributed random time.
func exponential(random *rand.Rand, mean time.Duration) time.Duration {
	return time.Duration(random.ExpFloat64() * float64(mean))
}

// Losing returns the trace with a further fraction of its values lost to metrics, from 0 to 1, chosen at random. The
// same seed loses the same ones. The trace itself is not changed; its load is shared.
func (t Trace) Losing(share float64, seed uint64) Trace {
	random := rand.New(rand.NewPCG(seed, 2))
	return t.lose(func(int) bool { return random.Float64() < share })
}

// Blind returns the trace with all values lost to metrics from a time on, for a length of time, as if the source of
// metrics were down. The trace itself is not changed; its load is shared.
func (t Trace) Blind(from time.Time, length time.Duration) Trace {
	return t.lose(func(i int) bool {
		since := t.Start.Add(time.Duration(i) * t.Step).Sub(from)
		return since >= 0 && since < length
	})
}

// lose returns the trace with the values lost for which lost returns true. It is called for each value in order.
func (t Trace) lose(lost func(i int) bool) Trace {
	t.Lost = slices.Grow(slices.Clone(t.Lost), len(t.Load))[:len(t.Load)]
	for i := range t.Lost {
		if lost(i) {
			t.Lost[i] = true
		}
	}
	return t
}

// NewTrace returns a trace of values that are a step apart. A NaN is lost to metrics, and its load is that of the value
// before, or of the first known one. Negative and infinite values are an error, and so is a trace without any known
// value.
func NewTrace(start time.Time, step time.Duration, values []float64) (Trace, error) {
	first := slices.IndexFunc(values, func(v float64) bool { return !math.IsNaN(v) })
	if first < 0 {
		return Trace{}, errors.New("the trace has no known values")
	}
	t := Trace{Start: start, Step: step, Load: slices.Clone(values)}
	last := values[first]
	for i, load := range values {
		switch {
		case math.IsNaN(load):
			if t.Lost == nil {
				t.Lost = make([]bool, len(values))
			}
			t.Load[i], t.Lost[i] = last, true
		case load < 0 || math.IsInf(load, 0):
			return Trace{}, fmt.Errorf("the load at %s is %v; it must be 0 or more",
				start.Add(time.Duration(i)*step).Format(time.RFC3339), load)
		default:
			last = load
		}
	}
	return t, nil
}

// MaxTrace is the maximum number of values in a trace: 23 days with one per second, or a year with one every 16 s.
const MaxTrace = 2_000_000

// stepTolerance is the fraction by which the time between two rows may differ from that of the first two.
const stepTolerance = 0.01

// ReadCSV reads a trace of two columns, the time and the load, with or without a header line. Times are in RFC 3339, or
// in seconds since 1970, at equal steps, to within 1 %. A row without a load is lost to metrics, as in [NewTrace].
// Lines that begin with # are skipped. Errors name the line.
func ReadCSV(r io.Reader) (Trace, error) {
	buffered := bufio.NewReader(r)
	// Spreadsheets begin a file with a byte order mark. A failed read here also fails below, where it is reported.
	const mark = "\ufeff"
	if begin, err := buffered.Peek(len(mark)); err == nil && string(begin) == mark {
		if _, err := buffered.Discard(len(mark)); err != nil {
			return Trace{}, err
		}
	}
	rows := csv.NewReader(buffered)
	rows.FieldsPerRecord, rows.ReuseRecord, rows.TrimLeadingSpace, rows.Comment = 2, true, true, '#'
	var t Trace
	var last time.Time
	for first := true; ; first = false {
		row, err := rows.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return Trace{}, fmt.Errorf("expected two columns, time and load: %w", err)
		}
		line, _ := rows.FieldPos(0)
		when, what := strings.TrimSpace(row[0]), strings.TrimSpace(row[1])
		if first && isHeader(when, what) {
			continue
		}
		if len(t.Load) == MaxTrace {
			return Trace{}, fmt.Errorf("line %d: the trace has more than %d rows; use larger steps, or a part of it",
				line, MaxTrace)
		}
		at, err := parseTime(when)
		if err != nil {
			return Trace{}, fmt.Errorf("line %d: %w", line, err)
		}
		if err := t.follow(last, at); err != nil {
			return Trace{}, fmt.Errorf("line %d: %w", line, err)
		}
		load, err := parseLoad(what)
		if err != nil {
			return Trace{}, fmt.Errorf("line %d: %w", line, err)
		}
		t.Load = append(t.Load, load)
		last = at
	}
	if len(t.Load) < 2 {
		return Trace{},
			fmt.Errorf("a trace needs at least two rows, as the time between them is its step; there are %d",
				len(t.Load))
	}
	// The mean step, so that rounding in the first one does not add up.
	return NewTrace(t.Start, last.Sub(t.Start)/time.Duration(len(t.Load)-1), t.Load)
}

// isHeader reports whether a row holds names: neither a time nor a load.
func isHeader(when, what string) bool {
	_, noTime := parseTime(when)
	_, noLoad := strconv.ParseFloat(what, 64)
	return noTime != nil && noLoad != nil && what != ""
}

// parseTime parses a time in RFC 3339 or in seconds since 1970. It rejects times that can't be counted in nanoseconds
// since then.
func parseTime(text string) (time.Time, error) {
	at, err := time.Parse(time.RFC3339, text)
	if seconds, notSeconds := strconv.ParseFloat(text, 64); notSeconds == nil {
		whole, part := math.Modf(seconds)
		if !(seconds >= 0 && seconds < 1<<33) {
			return time.Time{}, fmt.Errorf("time %q is out of range; use 0 to %d seconds since 1970", text,
				int64(1)<<33-1)
		}
		// Seconds are precise to the microsecond at best, as floats of this size have no more digits.
		return time.Unix(int64(whole), int64(math.Round(part*1e6))*1000).UTC(), nil
	}
	if err != nil {
		return time.Time{},
			fmt.Errorf("invalid time %q; use RFC 3339, such as 2026-03-02T08:00:00Z, or seconds since 1970", text)
	}
	if seconds := at.Unix(); seconds < 0 || seconds >= 1<<33 {
		return time.Time{}, fmt.Errorf("time %q is out of range; use the years 1970 to 2241", text)
	}
	return at, nil
}

// follow checks that a row's time is a step after the last one's, and sets the start and the step.
func (t *Trace) follow(last, at time.Time) error {
	switch step := at.Sub(last); {
	case len(t.Load) == 0:
		t.Start = at
	case step <= 0:
		return fmt.Errorf("time %s is not after that of the previous row, %s",
			at.Format(time.RFC3339Nano), last.Format(time.RFC3339Nano))
	case len(t.Load) == 1:
		t.Step = step
	case math.Abs(float64(step-t.Step)) > stepTolerance*float64(t.Step):
		return fmt.Errorf("the row is %s after the previous one, but the first step was %s; steps must be equal to "+
			"within 1 %%. "+
			"For a lost value, leave the load empty", step, t.Step)
	}
	return nil
}

// parseLoad parses a load. "" is a lost one, which is NaN.
func parseLoad(text string) (float64, error) {
	if text == "" {
		return math.NaN(), nil
	}
	load, err := strconv.ParseFloat(text, 64)
	if err != nil || !(load >= 0) || math.IsInf(load, 0) {
		return 0, fmt.Errorf("invalid load %q; it must be 0 or more, or empty where the value was lost", text)
	}
	return load, nil
}
