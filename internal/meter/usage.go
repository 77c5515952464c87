package meter

import (
	"context"
	"maps"
	"sync"
	"time"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
)

const (
	// usageFresh is how old the agents' report may be before they are asked again: they don't sample more often.
	usageFresh = engine.ShortestWindow
	// usagePatience bounds how long they may take: a hanging one takes seconds, longer than any Read waits.
	usagePatience = 30 * time.Second
	// usageKept is how long the report for a window is kept that nobody asks for.
	usageKept = time.Minute
)

// usages are the agents' last reports by window. For each window they are asked no more often than they sample,
// however many Reads there are. No Read waits for one that hangs: the previous report, with its age, is used
// until the new one arrives.
type usages struct {
	engine engine.Telemetry

	mu sync.Mutex
	of map[time.Duration]*usage
}

// usage is the agents' report for a window.
type usage struct {
	// begun is when they were last asked, and done is closed once they have answered.
	begun time.Time
	done  chan struct{}
	// answered is set if they have answered before, with value or err.
	answered bool
	value    engine.Usage
	err      error
}

// get returns the agents' report.
func (u *usages) get(ctx context.Context, now time.Time, window time.Duration) (engine.Usage, error) {
	asked, done := u.asked(ctx, now, window)
	select {
	case <-done:
	case <-ctx.Done():
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	if !asked.answered {
		return engine.Usage{}, context.Cause(ctx)
	}
	return asked.value, asked.err
}

// asked returns the usage of a window after making sure that the agents were asked, and the channel that is closed
// once they have answered.
func (u *usages) asked(ctx context.Context, now time.Time, window time.Duration) (*usage, <-chan struct{}) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.of == nil {
		u.of = map[time.Duration]*usage{}
	}
	maps.DeleteFunc(u.of, func(_ time.Duration, report *usage) bool {
		return closed(report.done) && now.Sub(report.begun) > usageKept
	})
	report := u.of[window]
	if report == nil {
		report = &usage{}
		u.of[window] = report
	}
	if report.done != nil && (!closed(report.done) || now.Sub(report.begun).Abs() < usageFresh) {
		return report, report.done
	}
	done := make(chan struct{})
	report.begun, report.done = now, done
	asking, cancel := context.WithTimeout(context.WithoutCancel(ctx), usagePatience)
	go func() {
		defer cancel()
		value, err := u.engine.Usage(asking, window)
		u.mu.Lock()
		defer u.mu.Unlock()
		report.answered, report.value, report.err = true, value, err
		close(done)
	}()
	return report, done
}

func closed(c chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// Loads returns the CPUs that members use by member name, and the CPU usage of hosts in percent by host name, as means
// over [domain.DefaultAgentWindow]. Unknown values are left out.
func (m *Meter) Loads(ctx context.Context) (members, hosts map[string]float64, err error) {
	ctx, cancel := context.WithTimeout(ctx, m.Limit)
	defer cancel()
	used, err := m.usages.get(ctx, time.Now(), domain.DefaultAgentWindow)
	if err != nil {
		return nil, nil, err
	}
	members, hosts = map[string]float64{}, map[string]float64{}
	for name, member := range used.Members {
		if busy := member.CPUs.Mean; busy != nil {
			members[name] = *busy
		}
	}
	for name, host := range used.Hosts {
		if busy := host.CPUs.Mean; busy != nil && host.TotalCPUs > 0 {
			hosts[name] = 100 * *busy / host.TotalCPUs
		}
	}
	return members, hosts, nil
}
