package autoscale

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"
	_ "time/tzdata" // for hosts without a time zone database, such as an image with only a program

	"github.com/robfig/cron/v3"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
)

// fiveFields is cron syntax as in crontab(5), without names for times such as @daily.
var fiveFields = cron.NewParser(cron.Minute | cron.Hour | cron.Dom | cron.Month | cron.Dow)

// timetable is what the schedules of a policy ask for, parsed once for many moments. It is not safe for concurrent use.
type timetable struct {
	schedules []parsedSchedule
	// asked is what is asked for from since to before until.
	asked        []Asked
	since, until time.Time
}

// parsedSchedule is a parsed schedule.
type parsedSchedule struct {
	name       string
	count      int
	start, end cron.Schedule
	zone       *time.Location
}

// newTimetable parses a policy's schedules into a timetable.
func newTimetable(schedules map[string]domain.ScalingSchedule) (timetable, error) {
	var t timetable
	for _, name := range slices.Sorted(maps.Keys(schedules)) {
		parsed, err := parseSchedule(schedules[name])
		if err != nil {
			return timetable{}, fmt.Errorf("schedule %q: %w", name, err)
		}
		parsed.name = name
		t.schedules = append(t.schedules, parsed)
	}
	return t, nil
}

// proposals returns what the active schedules ask for, ordered by name. The result is valid until the next call, and
// computed anew only if a schedule may have changed since the last one.
func (t *timetable) proposals(now time.Time) []Asked {
	if len(t.schedules) == 0 || !t.until.IsZero() && now.Before(t.until) && !now.Before(t.since) {
		return t.asked
	}
	t.asked = t.asked[:0]
	t.since, t.until = now, time.Time{}
	for _, s := range t.schedules {
		active, end, change := s.at(now)
		if t.until.IsZero() || change.Before(t.until) {
			t.until = change
		}
		if active {
			t.asked = append(t.asked, Asked{
				Name: s.name, Value: math.NaN(), Count: s.count, Known: true,
				Why: fmt.Sprintf("%d until %s %s", s.count, end.Format("2006-01-02 15:04"), s.zone),
			})
		}
	}
	return t.asked
}

// at reports whether the schedule is active, and when it next ends, in the local time of its time zone. The result
// holds until change.
//
// It is active if the last start is not before the last end. In the simple case of alternating starts and ends, that
// means that the next end comes before the next start, as in KEDA's cron scaler. KEDA's rule stays active after an end
// if another end is next, as with starts on Mondays and ends on each day, and becomes inactive before a second start.
//
// Unlike KEDA's, it works with local time as the clock shows it, as cron itself skips times that a clock skips when
// daylight-saving time begins: a start or an end at 2:30 would be missed for a day. Here it comes at 3:00, the moment
// from which the clock shows more than 2:30. Times that occur twice when daylight-saving time ends count the first
// time.
func (s parsedSchedule) at(now time.Time) (active bool, end, change time.Time) {
	local := now.In(s.zone)
	shown := clock(local)
	reached := shown
	zoneStart, zoneEnd := local.ZoneBounds()
	if !zoneStart.IsZero() {
		// In the repeated hour, times that were reached before the clock was set back stay reached.
		if before := clock(zoneStart.Add(-1).In(s.zone)); before.After(reached) {
			reached = before
		}
	}
	started, ended := last(s.start, reached), last(s.end, reached)
	end = s.end.Next(reached)
	next := s.start.Next(reached)
	if active = !started.IsZero() && !started.Before(ended); active {
		next = end
	}
	change = now.Add(next.Sub(shown))
	if !zoneEnd.IsZero() && zoneEnd.Before(change) {
		change = zoneEnd
	}
	return active, end, change
}

// last returns when a cron time last came, including now; zero if that is more than some years ago.
func last(s cron.Schedule, now time.Time) (came time.Time) {
	const longest = 9 * 366 * 24 * time.Hour // after 29 February 2096 comes that of 2104
	for before := time.Minute; came.IsZero() && before < 2*longest; before *= 2 {
		for next := s.Next(now.Add(-before)); !next.IsZero() && !next.After(now); next = s.Next(next) {
			came = next
		}
	}
	return came
}

// clock returns what the clock shows at a time as if that were UTC, in which all times occur once.
func clock(t time.Time) time.Time {
	return time.Date(t.Year(), t.Month(), t.Day(), t.Hour(), t.Minute(), t.Second(), t.Nanosecond(), time.UTC)
}

// parseSchedule parses a schedule, without its name.
func parseSchedule(s domain.ScalingSchedule) (parsedSchedule, error) {
	zone, err := timeZone(s.TimeZone)
	if err != nil {
		return parsedSchedule{}, err
	}
	start, err := parseCron(s.Start)
	if err != nil {
		return parsedSchedule{}, fmt.Errorf("start: %w", err)
	}
	end, err := parseCron(s.End)
	if err != nil {
		return parsedSchedule{}, fmt.Errorf("end: %w", err)
	}
	return parsedSchedule{count: s.Count, start: start, end: end, zone: zone}, nil
}

// parseCron parses a cron expression, for clocks that are treated as UTC.
func parseCron(text string) (cron.Schedule, error) {
	const allowed = "use five fields: minute, hour, day of the month, month and day of the week, such as \"30 6 * " +
		"* MON-FRI\""
	// The library accepts a time zone before the fields, and panics on one without fields.
	if strings.HasPrefix(strings.TrimSpace(text), "TZ=") || strings.HasPrefix(strings.TrimSpace(text), "CRON_TZ=") {
		return nil, fmt.Errorf("%q contains a time zone, which belongs in time_zone; %s", text, allowed)
	}
	schedule, err := fiveFields.Parse(text)
	if err != nil {
		return nil, fmt.Errorf("%q is not a cron expression: %w; %s", text, err, allowed)
	}
	if fields, ok := schedule.(*cron.SpecSchedule); ok {
		fields.Location = time.UTC
	}
	// Any date would do: within four years, or eight around 2100, each day of the calendar comes, and the library looks
	// ahead for five.
	if schedule.Next(time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC)).IsZero() {
		return nil, fmt.Errorf("%q never matches, as there is no such date", text)
	}
	return schedule, nil
}

// timeZone looks up a time zone by name in the IANA database of the host that this runs on, or else in that of the Go
// release that built this.
func timeZone(name string) (*time.Location, error) {
	if name == "Local" {
		return nil, errors.New(
			"\"Local\" may differ between hosts; use a name from the IANA database, such as \"Europe/Warsaw\"",
		)
	}
	zone, err := time.LoadLocation(name)
	if err == nil {
		return zone, nil
	}
	return nil, fmt.Errorf("unknown time zone %q; use UTC or a name from the IANA database, such as \"Europe/Warsaw\"",
		name)
}
