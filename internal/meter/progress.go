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
	// maxLines is how many lines of a member are read of a window: the last ones.
	maxLines = 20_000
	// logsAtOnce bounds how many logs of a host are read at once, and allLogsAtOnce how many of all hosts.
	logsAtOnce    = 4
	allLogsAtOnce = 64
)

// logKey is the part of a log that is read.
type logKey struct {
	member string
	since  int64
}

// memberLog is a log that is read, and the patterns that it is looked through for, so that no line is kept.
type memberLog struct {
	patterns map[string]*regexp.Regexp
	rates    *errand[map[string]rate]
}

// rate is how many steps a second were taken, or why that is not known.
type rate struct {
	value float64
	why   string
}

// askProgress notes that the logs of the members have to be read.
func (r *reading) askProgress(q Question, s domain.ProgressSource) Answer {
	pattern, err := regexp.Compile(s.Pattern)
	if err != nil {
		return func() autoscale.Measurement {
			return missing(fmt.Sprintf("the pattern %q can't be used: %v", s.Pattern, err))
		}
	}
	role, over := q.Role, q.Window.Or(domain.DefaultAgentWindow)
	if s.Role != "" {
		role = s.Role
	}
	p := r.part(q.Group, role)
	logs := make([]*errand[map[string]rate], len(p.running))
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
			return missing(fmt.Sprintf("no member of role %s runs", role))
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

// askLog notes that a member's log has to be read since a moment, and looked through for a pattern.
func (r *reading) askLog(o *domain.Observed, since time.Time, pattern *regexp.Regexp) *errand[map[string]rate] {
	if r.logs == nil {
		r.logs, r.memberLogs = r.meter.engine.Snapshot(), map[logKey]*memberLog{}
	}
	key := logKey{o.Name, since.UnixNano()}
	log := r.memberLogs[key]
	if log == nil {
		log = &memberLog{patterns: map[string]*regexp.Regexp{}}
		r.memberLogs[key] = log
		elapsed := max(r.now.Sub(since), engine.ShortestWindow) // no log tells times more exactly
		all := r.lane("logs", allLogsAtOnce)
		log.rates = share(r, key, r.lane("logs of "+o.Host, logsAtOnce), func(ctx context.Context) (map[string]rate, error) {
			if err := all.enter(ctx); err != nil {
				return nil, err
			}
			defer all.leave()
			return log.read(ctx, r.logs, o.Name, since, elapsed)
		})
	}
	log.patterns[pattern.String()] = pattern
	return log.rates
}

// read reads the log, and returns the rates by the patterns.
func (l *memberLog) read(ctx context.Context, logs engine.Telemetry, member string, since time.Time, elapsed time.Duration) (map[string]rate, error) {
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

// readLines reads what a member has written since a moment, so long ago.
func readLines(ctx context.Context, logs engine.Telemetry, member string, since time.Time, elapsed time.Duration) ([]string, error) {
	lines, err := logs.Logs(ctx, member, engine.LogOptions{Tail: maxLines, Since: since, Most: bounded.ProgressLog})
	if _, tooMuch := errors.AsType[*bounded.Error](err); tooMuch {
		return nil, fmt.Errorf("%w in %s, which are too many to follow: set a shorter window", err, elapsed)
	}
	return lines, err
}

var errTooLarge = errors.New("the numbers of its steps are too large")

// rateOf returns how many steps a second were taken by the lines of a time, or why that is not known.
//
// Lines tell no times of their own, and so the rate is the number of lines a second, each of which stands for one step,
// or for as many as the number of the step has gone on by from one line to the next, in the mean. That is exact where
// lines come at regular times, and needs nothing to be remembered of the time before.
func rateOf(lines []string, pattern *regexp.Regexp, elapsed time.Duration) (rate float64, why string) {
	if len(lines) >= maxLines {
		return 0, fmt.Sprintf("its log has %d lines or more in %s, which are too many to follow: set a shorter window", maxLines, elapsed)
	}
	numbered := len(stepGroups(pattern)) > 0
	matched, counter := count(lines, pattern)
	perLine := 1.0
	switch {
	case matched == 0:
		return 0, fmt.Sprintf("no line of its log matches within %s", elapsed)
	case numbered && counter.intervals == 0:
		return 0, fmt.Sprintf("its log tells of one step within %s: set a longer window", elapsed)
	case numbered:
		perLine = counter.sum / float64(counter.intervals)
	}
	rate = perLine * float64(matched) / elapsed.Seconds()
	if math.IsInf(rate, 0) {
		return 0, errTooLarge.Error()
	}
	return rate, ""
}

// count returns how many of some lines tell of a step, and what those have counted up to.
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

// counter follows a number that counts up.
type counter struct {
	begun bool
	// most is the largest number since it began anew, and sum what it has gone on by in so many intervals between two
	// lines.
	most, sum float64
	intervals int
}

// add takes the next number. One that has gone back to half or less has begun anew. Where it goes back by less, steps
// are repeated, or told of by several processes: there is no progress until they are beyond where they were.
func (c *counter) add(step float64) {
	if !c.begun || step <= c.most/2 && step < c.most {
		c.begun, c.most = true, step
		return
	}
	c.sum += max(step-c.most, 0)
	c.most = max(c.most, step)
	c.intervals++
}

// stepGroups are the indexes of the groups of a pattern that are the number of the step: a pattern of several kinds of
// lines has several.
func stepGroups(pattern *regexp.Regexp) []int {
	var groups []int
	for i, name := range pattern.SubexpNames() {
		if name == domain.StepGroup {
			groups = append(groups, i)
		}
	}
	return groups
}

// stepOf returns the number of the step that a line tells of.
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
