package meter

import (
	"context"
	"errors"
	"fmt"
	"math"
	"regexp"
	"strconv"
	"time"

	"github.com/trainyard/terraform-provider-trainyard/internal/autoscale"
	"github.com/trainyard/terraform-provider-trainyard/internal/bounded"
	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
)

const (
	// maxLines is how many of a member's last lines are read per window.
	maxLines = 20_000
	// logsAtOnce bounds how many logs are read at once from one host, and allLogsAtOnce from all hosts.
	logsAtOnce    = 4
	allLogsAtOnce = 64
)

// logKey identifies the part of a log that is read.
type logKey struct {
	member string
	since  int64
}

// memberLog is a log to read, with the patterns to search it for, so that no lines have to be kept.
type memberLog struct {
	patterns map[string]*regexp.Regexp
	rates    *sharedRequest[map[string]rate]
}

// rate is a number of steps per second, or why it is unknown.
type rate struct {
	value float64
	why   string
}

// askProgress requests the logs of the members.
func (r *reading) askProgress(q Question, s domain.ProgressSource) Answer {
	pattern, err := regexp.Compile(s.Pattern)
	if err != nil {
		return func() autoscale.Measurement {
			return missing(fmt.Sprintf("invalid pattern %q: %v", s.Pattern, err))
		}
	}
	role, over := q.Role, q.Window.Or(domain.DefaultAgentWindow)
	if s.Role != "" {
		role = s.Role
	}
	p := r.part(q.Group, role)
	logs := make([]*sharedRequest[map[string]rate], len(p.running))
	for i, o := range p.running {
		since := r.now.Add(-over)
		if o.StartedAt != nil && o.StartedAt.After(since) {
			since = *o.StartedAt
		}
		logs[i] = r.askLog(o, since, pattern)
	}
	return func() autoscale.Measurement {
		switch {
		case p.unknown != "":
			return missing(p.unknown)
		case len(p.running) == 0:
			return missing(fmt.Sprintf("no member of role %s is running", role))
		}
		all := autoscale.Measurement{At: r.now, Members: make(map[string]float64, len(p.running))}
		var most float64
		var absent absentees
		for i, o := range p.running {
			rates, err := logs[i].wait()
			if err != nil {
				absent.add(o.Name, err.Error())
				continue
			}
			rate := rates[pattern.String()]
			if rate.why != "" {
				absent.add(o.Name, rate.why)
				continue
			}
			all.Members[o.Name] = rate.value
			all.Value += rate.value
			most = max(most, rate.value)
		}
		if s.Combine == domain.CombineMax && len(all.Members) > 0 {
			return autoscale.Measurement{Value: most, At: r.now}
		}
		if why := absent.why(len(p.running)); why != "" {
			return missing(why)
		}
		if s.Combine == domain.CombineMean {
			return autoscale.Measurement{Value: all.Value / float64(len(p.running)), At: r.now}
		}
		return all
	}
}

// askLog requests a member's log since a time, to be searched for a pattern.
func (r *reading) askLog(o *domain.Observed, since time.Time, pattern *regexp.Regexp) *sharedRequest[map[string]rate] {
	if r.logs == nil {
		r.logs, r.memberLogs = r.meter.engine.Snapshot(), map[logKey]*memberLog{}
	}
	key := logKey{o.Name, since.UnixNano()}
	log := r.memberLogs[key]
	if log == nil {
		log = &memberLog{patterns: map[string]*regexp.Regexp{}}
		r.memberLogs[key] = log
		elapsed := max(r.now.Sub(since), engine.ShortestWindow) // logs have no finer timestamps
		all := r.semaphore("logs", allLogsAtOnce)
		log.rates = share(r, key, r.semaphore("logs of "+o.Host, logsAtOnce),
			func(ctx context.Context) (map[string]rate, error) {
				if err := all.acquire(ctx); err != nil {
					return nil, err
				}
				defer all.release()
				return log.read(ctx, r.logs, o.Name, since, elapsed)
			})
	}
	log.patterns[pattern.String()] = pattern
	return log.rates
}

// read reads the log, and returns the rates by pattern.
func (l *memberLog) read(
	ctx context.Context, logs engine.Telemetry, member string, since time.Time, elapsed time.Duration,
) (map[string]rate, error) {
	lines, err := readLines(ctx, logs, member, since, elapsed)
	if err != nil {
		return nil, err
	}
	rates := make(map[string]rate, len(l.patterns))
	for text, pattern := range l.patterns {
		value, why := rateOf(lines, pattern, elapsed)
		rates[text] = rate{value, why}
	}
	return rates, nil
}

// readLines reads what a member has written since a time; elapsed is how long ago that was.
func readLines(
	ctx context.Context, logs engine.Telemetry, member string, since time.Time, elapsed time.Duration,
) ([]string, error) {
	lines, err := logs.Logs(ctx, member, engine.LogOptions{Tail: maxLines, Since: since, Most: bounded.ProgressLog})
	if _, tooMuch := errors.AsType[*bounded.Error](err); tooMuch {
		return nil, fmt.Errorf("%w in %s, too many to follow: set a shorter window", err, elapsed)
	}
	return lines, err
}

var errTooLarge = errors.New("its step numbers are too large")

// rateOf returns the steps per second from the lines of a period, or why they are unknown.
//
// Lines have no timestamps, so the rate is the number of lines per second times the steps per line: 1, or the mean
// increase of the step number from one line to the next. That is exact for lines at regular intervals, and needs no
// state from earlier periods.
func rateOf(lines []string, pattern *regexp.Regexp, elapsed time.Duration) (rate float64, why string) {
	if len(lines) >= maxLines {
		return 0, fmt.Sprintf("its log has at least %d lines in %s, too many to follow: set a shorter window", maxLines,
			elapsed)
	}
	numbered := len(stepGroups(pattern)) > 0
	matched, counter := count(lines, pattern)
	perLine := 1.0
	switch {
	case matched == 0:
		return 0, fmt.Sprintf("no line of its log in the last %s matches", elapsed)
	case numbered && counter.intervals == 0:
		return 0, fmt.Sprintf("its log has only one step in the last %s: set a longer window", elapsed)
	case numbered:
		perLine = counter.sum / float64(counter.intervals)
	}
	rate = perLine * float64(matched) / elapsed.Seconds()
	if math.IsInf(rate, 0) {
		return 0, errTooLarge.Error()
	}
	return rate, ""
}

// count returns how many lines report a step, and the counter of their step numbers.
func count(lines []string, pattern *regexp.Regexp) (matched int, counter counter) {
	groups := stepGroups(pattern)
	for _, line := range lines {
		if len(groups) == 0 {
			if pattern.MatchString(line) {
				matched++
			}
			continue
		}
		if step, ok := stepOf(line, pattern, groups); ok {
			matched++
			counter.add(step)
		}
	}
	return matched, counter
}

// counter follows an increasing step number.
type counter struct {
	begun bool
	// most is the highest number since the last restart, and sum the total increase over this many
	// intervals between lines.
	most, sum float64
	intervals int
}

// add takes the next number. A drop to half or less is a restart. After a smaller drop, steps are repeated or reported
// by several processes: there is no progress until the number exceeds the highest one.
func (c *counter) add(step float64) {
	if !c.begun || step <= c.most/2 && step < c.most {
		c.begun, c.most = true, step
		return
	}
	c.sum += max(step-c.most, 0)
	c.most = max(c.most, step)
	c.intervals++
}

// stepGroups returns the indexes of a pattern's groups for the step number. A pattern for several kinds of
// lines has several of them.
func stepGroups(pattern *regexp.Regexp) []int {
	var groups []int
	for i, name := range pattern.SubexpNames() {
		if name == domain.StepGroup {
			groups = append(groups, i)
		}
	}
	return groups
}

// stepOf returns the step number in a line.
func stepOf(line string, pattern *regexp.Regexp, groups []int) (step float64, ok bool) {
	at := pattern.FindStringSubmatchIndex(line)
	for _, group := range groups {
		if at == nil || at[2*group] < 0 {
			continue
		}
		step, err := strconv.ParseFloat(line[at[2*group]:at[2*group+1]], 64)
		if err == nil && step >= 0 && !math.IsInf(step, 0) {
			return step, true
		}
	}
	return 0, false
}
