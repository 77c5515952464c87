//go:build linux

package main

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestSample(t *testing.T) {
	ms := func(values ...int) sample {
		var s sample
		for _, v := range values {
			s = append(s, time.Duration(v)*time.Millisecond)
		}
		return s
	}
	for name, c := range map[string]struct{ got, want any }{
		"median of one":           {ms(7).median(), 7 * time.Millisecond},
		"median of an odd number": {ms(30, 10, 20).median(), 20 * time.Millisecond},
		"median of an even one":   {ms(40, 10, 20, 30).median(), 25 * time.Millisecond},
		"p95 of one":              {ms(7).p95(), 7 * time.Millisecond},
		"p95 of twenty": {
			ms(20, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19).p95(), 19 * time.Millisecond,
		},
		"p95 of twenty-one": {
			ms(21, 20, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19).p95(), 20 * time.Millisecond,
		},
		"difference run by run": {ms(30, 10).minus(ms(10, 20)), ms(20, -10)},
		"ratio of medians":      {ms(30, 10, 20).ratio(ms(10, 5, 100)), 2.0},
		"seconds":               {ms(1500, 250, 3000).seconds(), "1.50 s (0.25 – 3.00)"},
		"milliseconds":          {ms(15, 2, 30).milliseconds(), "15 ms (2 – 30)"},
	} {
		if diff := cmp.Diff(c.want, c.got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestTable(t *testing.T) {
	table := table{head: []string{"name", "×"}}
	table.add("a", "1.00 ×")
	table.add("longer", "")
	want := strings.Join([]string{
		"  name          ×",
		"  ──────   ──────",
		"  a        1.00 ×",
		"  longer         ",
		"",
	}, "\n")
	if diff := cmp.Diff(want, table.String()); diff != "" {
		t.Errorf("table (-want +got):\n%s", diff)
	}
	for n, want := range map[int]string{0: "0", 999: "999", 1000: "1,000", 1234567: "1,234,567"} {
		if got := count(n); got != want {
			t.Errorf("count(%d) = %q, not %q", n, got, want)
		}
	}
}

func TestReadEngineCalls(t *testing.T) {
	log := strings.Join([]string{
		`2026-01-01T00:00:00.000Z [DEBUG] provider.x: engine call: duration="271.5µs" tf_rpc=ReadResource call="Get group"`,
		`2026-01-01T00:00:00.000Z [TRACE] provider.x: Received request: call=Nothing duration=1h`,
		`2026-01-01T00:00:00.000Z [DEBUG] provider.x: engine call: call=Observe duration=1.5ms`,
		`2026-01-01T00:00:00.000Z [DEBUG] provider.x: engine call: call="Get group" duration=1s`,
	}, "\n")
	calls := engineCalls{counts: map[string]int{}}
	if err := readLog(strings.NewReader(log), "engine call", calls.log); err != nil {
		t.Fatal(err)
	}
	if got, want := calls.String(), "Get group 2, Observe 1"; got != want {
		t.Errorf("calls are %q, not %q", got, want)
	}
	if got := calls.total(); got != 3 {
		t.Errorf("%d calls, not 3", got)
	}
	if want := time.Second + 1771500*time.Nanosecond; calls.time != want {
		t.Errorf("they took %s, not %s", calls.time, want)
	}
	if err := readLog(strings.NewReader(`x: engine call: call="Get group" duration=soon`), "engine call",
		calls.log); err == nil {
		t.Error("a duration that is none is no error")
	}
}

// Without Ansible, the table says why and still has all its cells.
func TestSidesWithoutAnsible(t *testing.T) {
	of := func(name string, ms int) side {
		s := sample{time.Duration(ms) * time.Millisecond}
		return side{name: name, apply: s, plan: s, destroy: s, restart: s}
	}
	sections := sidesTable([]side{of("systemd", 50), of("swarm", 100)}, errors.New("no route to PyPI"))
	text := ""
	for _, section := range sections {
		text += section.String()
	}
	for _, want := range []string{"not there", "no route to PyPI", "0.50 ×", "50 ms (50 – 50)"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	rows, ok := sections[0].(*table)
	if !ok {
		t.Fatalf("a %T comes first", sections[0])
	}
	for _, row := range rows.rows {
		if len(row) != len(rows.head) {
			t.Errorf("%d cells under %d heads: %q", len(row), len(rows.head), row)
		}
	}
	if strings.Contains(text, "MISSED") {
		t.Errorf("half of swarm's time misses a bar:\n%s", text)
	}
	if missed := sidesTable([]side{of("systemd", 101), of("swarm", 100)},
		nil)[0].String(); strings.Count(missed, "MISSED") != 3 {
		t.Errorf("not all bars are missed:\n%s", missed)
	}
}
