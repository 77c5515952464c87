package autoscale

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
)

// scheduled reports whether a schedule is active: from each start to the next end, both in the local time of its time
// zone.
func scheduled(s domain.ScalingSchedule, now time.Time) (active bool, err error) {
	parsed, err := parseSchedule(s)
	if err != nil {
		return false, err
	}
	active, _, _ = parsed.at(now)
	return active, nil
}

func TestScheduled(t *testing.T) {
	schedule := func(start, end, zone string) domain.ScalingSchedule {
		return domain.ScalingSchedule{Start: start, End: end, TimeZone: zone, Count: 4}
	}
	const zone = "Europe/Warsaw"
	day, night := schedule("0 8 * * *", "0 20 * * *", ""), schedule("0 22 * * *", "0 6 * * *", "")
	// Clocks go from 2:00 to 3:00 at 2026-03-29T01:00Z, and from 3:00 to 2:00 at 2026-10-25T01:00Z.
	skippedStart, skippedEnd := schedule("30 2 * * *", "0 6 * * *", zone), schedule("0 22 * * *", "30 2 * * *", zone)
	for name, test := range map[string]struct {
		schedule domain.ScalingSchedule
		// active and idle are times in RFC 3339.
		active, idle []string
	}{
		"from 6 to 20 in Asia/Kolkata (documentation of KEDA's cron scaler)": {
			schedule("0 6 * * *", "0 20 * * *", "Asia/Kolkata"),
			[]string{"2026-03-02T06:00:00+05:30", "2026-03-02T19:59:59+05:30"},
			[]string{"2026-03-02T05:59:59+05:30", "2026-03-02T20:00:00+05:30"},
		},
		"by day": {
			day, []string{"2026-03-02T08:00:00Z", "2026-03-02T19:59:59Z"},
			[]string{"2026-03-02T07:59:59Z", "2026-03-02T20:00:00Z"},
		},
		"by night": {
			night, []string{"2026-03-02T22:00:00Z", "2026-03-03T00:00:00Z", "2026-03-03T05:59:59Z"},
			[]string{"2026-03-02T21:59:59Z", "2026-03-03T06:00:00Z"},
		},
		"over the end of a year": {
			night, []string{"2026-12-31T23:59:59Z", "2027-01-01T05:59:59Z"}, []string{"2027-01-01T06:00:00Z"},
		},
		"on working days": {
			schedule("0 8 * * MON-FRI", "0 18 * * MON-FRI", ""),
			[]string{"2026-03-02T12:00:00Z", "2026-03-06T12:00:00Z"},
			[]string{"2026-03-07T12:00:00Z", "2026-03-08T12:00:00Z", "2026-03-06T18:00:00Z"},
		},
		"at the end of months": {
			schedule("0 0 28 * *", "0 0 1 * *", ""),
			[]string{"2026-02-28T12:00:00Z", "2026-04-30T23:59:59Z", "2028-02-29T12:00:00Z"},
			[]string{"2026-03-01T00:00:00Z", "2026-05-27T23:59:59Z"},
		},
		"on the 31st, which few months have": {
			schedule("0 0 31 * *", "0 12 31 * *", ""), []string{"2026-03-31T11:59:59Z"},
			[]string{"2026-04-30T06:00:00Z", "2026-03-31T12:00:00Z"},
		},
		"in leap years": {
			schedule("0 0 29 2 *", "0 0 1 3 *", ""), []string{"2028-02-29T00:00:00Z"},
			[]string{"2026-02-28T12:00:00Z", "2026-03-01T00:00:00Z"},
		},
		"in another zone": {
			schedule("0 8 * * *", "0 20 * * *", zone),
			[]string{"2026-03-02T07:00:00Z", "2026-07-02T06:00:00Z", "2026-07-02T19:59:59+02:00"},
			[]string{"2026-03-02T06:59:59Z", "2026-07-02T18:00:00Z"},
		},
		"a start that the clock skips": {
			skippedStart,
			[]string{"2026-03-28T01:30:00Z", "2026-03-29T01:00:00Z", "2026-03-29T03:59:59Z"},
			[]string{"2026-03-28T05:00:00Z", "2026-03-28T12:00:00Z", "2026-03-29T00:59:59Z", "2026-03-29T04:00:00Z"},
		},
		"an end that the clock skips": {
			skippedEnd,
			[]string{"2026-03-28T21:00:00Z", "2026-03-29T00:59:59Z", "2026-03-29T20:00:00Z"},
			[]string{"2026-03-29T01:00:00Z", "2026-03-29T19:59:59Z"},
		},
		"a start that the clock shows twice": {
			skippedStart,
			[]string{"2026-10-25T00:30:00Z", "2026-10-25T01:00:00Z", "2026-10-25T01:29:00Z", "2026-10-25T04:59:59Z"},
			[]string{"2026-10-25T00:29:59Z", "2026-10-25T05:00:00Z"},
		},
		"an end that the clock shows twice": {
			skippedEnd,
			[]string{"2026-10-24T20:00:00Z", "2026-10-25T00:29:59Z"},
			[]string{"2026-10-25T00:30:00Z", "2026-10-25T01:00:00Z", "2026-10-25T01:29:00Z", "2026-10-25T20:59:59Z"},
		},
		"two starts before an end": {
			schedule("0 8,9 * * *", "0 20 * * *", ""), []string{"2026-03-02T08:30:00Z", "2026-03-02T09:00:00Z"},
			[]string{"2026-03-02T20:30:00Z"},
		},
		"ends without a start": {
			schedule("0 8 * * MON", "0 20 * * *", ""), []string{"2026-03-02T19:00:00Z"},
			[]string{"2026-03-02T20:00:00Z", "2026-03-03T12:00:00Z", "2026-03-09T07:59:00Z"},
		},
		"a start and an end at once": {
			schedule("0 8 * * *", "0 8,20 * * *", ""), []string{"2026-03-02T08:00:00Z", "2026-03-02T19:59:00Z"},
			[]string{"2026-03-02T07:00:00Z", "2026-03-02T20:00:00Z"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			for want, times := range map[bool][]string{true: test.active, false: test.idle} {
				for _, text := range times {
					now, err := time.Parse(time.RFC3339, text)
					if err != nil {
						t.Fatal(err)
					}
					if got, err := scheduled(test.schedule, now); err != nil || got != want {
						t.Errorf("at %s it is active: %v, %v; want %v", text, got, err, want)
					}
				}
			}
		})
	}
}

func TestScheduleFaults(t *testing.T) {
	for name, test := range map[string]struct {
		schedule domain.ScalingSchedule
		want     string
	}{
		"no start":   {domain.ScalingSchedule{End: "0 6 * * *"}, `start: "" is not a cron expression`},
		"six fields": {domain.ScalingSchedule{Start: "0 0 6 * * *", End: "0 6 * * *"}, "use five fields"},
		"out of range": {
			domain.ScalingSchedule{Start: "0 6 * * *", End: "0 24 * * *"}, `end: "0 24 * * *" is not a cron expression`,
		},
		"a name": {domain.ScalingSchedule{Start: "@daily", End: "0 6 * * *"}, "use five fields"},
		"a zone in it": {
			domain.ScalingSchedule{Start: "TZ=UTC 0 6 * * *", End: "0 7 * * *"}, "belongs in time_zone",
		},
		"only a zone":  {domain.ScalingSchedule{Start: " CRON_TZ=UTC", End: "0 7 * * *"}, "belongs in time_zone"},
		"no such date": {domain.ScalingSchedule{Start: "0 6 30 2 *", End: "0 7 * * *"}, "never matches"},
		"no such zone": {
			domain.ScalingSchedule{Start: "0 6 * * *", End: "0 7 * * *", TimeZone: "Europe/Warschau"},
			`"Europe/Warschau"`,
		},
		"the host's zone": {
			domain.ScalingSchedule{Start: "0 6 * * *", End: "0 7 * * *", TimeZone: "Local"}, "may differ between hosts",
		},
		"a path": {
			domain.ScalingSchedule{Start: "0 6 * * *", End: "0 7 * * *", TimeZone: "../etc/passwd"}, `"../etc/passwd"`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := scheduled(test.schedule, midnight); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("the error is %v, want one with %q", err, test.want)
			}
			if _, err := newTimetable(map[string]domain.ScalingSchedule{"night": test.schedule}); err == nil ||
				!strings.HasPrefix(err.Error(), `schedule "night": `) {
				t.Errorf("the timetable's error is %v", err)
			}
		})
	}
}

// TestTimetable checks that a timetable gives the same result at each moment as its schedules alone, whatever it was
// asked before.
func TestTimetable(t *testing.T) {
	zone, err := time.LoadLocation("Europe/Warsaw")
	if err != nil {
		t.Fatal(err)
	}
	schedules := map[string]domain.ScalingSchedule{
		"day":      {Start: "0 8 * * MON-FRI", End: "0 20 * * MON-FRI", TimeZone: "Europe/Warsaw", Count: 8},
		"early":    {Start: "30 2 * * *", End: "0 6 * * *", TimeZone: "Europe/Warsaw", Count: 3},
		"late":     {Start: "0 22 * * *", End: "30 2 * * *", TimeZone: "Europe/Warsaw", Count: 2},
		"new york": {Start: "30 1 * * *", End: "30 2 * * *", TimeZone: "America/New_York", Count: 5},
		"utc":      {Start: "*/20 * * * *", End: "10-59/20 * * * *", Count: 1},
	}
	names := []string{"day", "early", "late", "new york", "utc"}
	timetable, err := newTimetable(schedules)
	if err != nil {
		t.Fatal(err)
	}
	check := func(now time.Time) {
		t.Helper()
		var want, got []int
		for _, name := range names {
			active, err := scheduled(schedules[name], now)
			if err != nil {
				t.Fatal(err)
			}
			if active {
				want = append(want, schedules[name].Count)
			}
		}
		for _, p := range timetable.proposals(now) {
			got = append(got, p.Count)
			if p.Abstains {
				t.Errorf("at %s a schedule abstains", now)
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("at %s (-want +got):\n%s", now, diff)
		}
	}
	for _, from := range []time.Time{
		time.Date(2026, 3, 27, 12, 0, 0, 0, zone), time.Date(2026, 10, 24, 12, 0, 0, 0, zone),
		time.Date(2026, 10, 31, 12, 0, 0, 0, zone), midnight,
	} {
		for now := from; now.Before(from.Add(3 * 24 * time.Hour)); now = now.Add(5*time.Minute + 7*time.Second) {
			check(now)
		}
	}
	want := []Asked{
		{Name: "late", Value: math.NaN(), Count: 2, Known: true, Why: "2 until 2026-03-04 02:30 Europe/Warsaw"},
	}
	got := timetable.proposals(time.Date(2026, 3, 3, 23, 15, 0, 0, zone))
	if diff := cmp.Diff(want, got, cmpopts.EquateNaNs()); diff != "" {
		t.Errorf("proposals (-want +got):\n%s", diff)
	}
}

func TestTimetableWithoutSchedules(t *testing.T) {
	timetable, err := newTimetable(nil)
	if err != nil {
		t.Fatal(err)
	}
	if got := timetable.proposals(midnight); len(got) > 0 {
		t.Errorf("no schedule asks for %v", got)
	}
}

func BenchmarkProposals(b *testing.B) {
	timetable, err := newTimetable(map[string]domain.ScalingSchedule{
		"day":   {Start: "0 8 * * MON-FRI", End: "0 20 * * MON-FRI", TimeZone: "Europe/Warsaw", Count: 8},
		"night": {Start: "0 22 * * *", End: "0 6 * * *", Count: 2},
	})
	if err != nil {
		b.Skip(err)
	}
	now := midnight
	for b.Loop() {
		now = now.Add(15 * time.Second)
		timetable.proposals(now)
	}
}
