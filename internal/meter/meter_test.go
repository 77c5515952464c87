package meter

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/trainyard/terraform-provider-trainyard/internal/acctest"
	"github.com/trainyard/terraform-provider-trainyard/internal/acctest/patience"
	"github.com/trainyard/terraform-provider-trainyard/internal/autoscale"
	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
)

func readFile(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// patient returns a meter that gives up nothing that answers, however busy this machine is.
func patient(e Engine) *Meter {
	m := New(e)
	m.Limit = patience.Limit
	return m
}

// noon is when everything is read.
var noon = time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)

// fake is an engine that only reports usage and logs.
type fake struct {
	engine.Engine
	usage func(ctx context.Context, window time.Duration) (engine.Usage, error)
	logs  func(ctx context.Context, member string, options engine.LogOptions) ([]string, error)

	mu sync.Mutex
	// asked are the calls so far.
	asked []string
}

func (f *fake) note(format string, args ...any) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.asked = append(f.asked, fmt.Sprintf(format, args...))
}

func (f *fake) calls() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Sorted(slices.Values(f.asked))
}

func (f *fake) Snapshot() engine.Engine { return f }

func (f *fake) Usage(ctx context.Context, window time.Duration) (engine.Usage, error) {
	f.note("usage of %s", window)
	return f.usage(ctx, window)
}

func (f *fake) Logs(ctx context.Context, member string, options engine.LogOptions) ([]string, error) {
	f.note("log of %s since %s", member, options.Since.UTC().Format(time.TimeOnly))
	return f.logs(ctx, member, options)
}

// reports returns an engine whose agents always report this usage.
func reports(usage engine.Usage) *fake {
	return &fake{usage: func(context.Context, time.Duration) (engine.Usage, error) { return usage, nil }}
}

// writes returns an engine whose members have written these lines.
func writes(lines map[string][]string) *fake {
	return &fake{logs: func(_ context.Context, member string, _ engine.LogOptions) ([]string, error) {
		written, found := lines[member]
		if !found {
			return nil, fmt.Errorf("member %q: %w", member, engine.ErrNotFound)
		}
		return written, nil
	}}
}

// running returns a member that has run for ten minutes.
func running(role string, index int) domain.Observed {
	return domain.Observed{
		Name: domain.MemberName("job", role, index), Group: "job", Role: role, Index: index, Host: "gpu1", Run: 2,
		State: domain.StateRunning, StartedAt: new(noon.Add(-10 * time.Minute)),
	}
}

// jobOf returns an observation with the group "job" of these members.
func jobOf(members ...domain.Observed) Observation {
	document := domain.GroupDocument{
		Spec: domain.Group{Roles: map[string]domain.Role{
			"worker": {Resources: domain.ResourceRequirements{CPUs: 4, MemoryMiB: 1024}}, "ps": {},
		}},
		MinRun: 2, Counts: map[string]int{"worker": 0, "ps": 0}, Assignments: map[string]domain.Assignment{},
	}
	for _, o := range members {
		document.Counts[o.Role]++
	}
	return Observation{
		Groups: map[string]domain.GroupDocument{"job": document}, Members: map[string][]domain.Observed{"job": members},
	}
}

// read reads one metric of the workers.
func read(t *testing.T, m *Meter, observation Observation, q Question) autoscale.Measurement {
	t.Helper()
	q.Group, q.Role = "job", "worker"
	return m.Read(acctest.Bounded(t), noon, observation, []Question{q})[0]
}

// missed fails unless a measurement is missing for this reason.
func missed(t *testing.T, got autoscale.Measurement, why string) {
	t.Helper()
	if got.Value != 0 || !got.At.IsZero() || got.Members != nil || !strings.Contains(got.Why, why) || why == "" {
		t.Errorf("the measurement is %+v, want none for %q", got, why)
	}
}

// What several questions need is read once.
func TestReadsAreShared(t *testing.T) {
	var mu sync.Mutex
	requests := map[string]int{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		requests[r.URL.Path+" "+r.FormValue("query")]++
		mu.Unlock()
		if strings.HasSuffix(r.URL.Path, "/query") {
			_, _ = fmt.Fprintf(w, `{"status":"success","data":{"resultType":"scalar","result":[%d,"7"]}}`, noon.Unix())
			return
		}
		_, _ = fmt.Fprint(w, `{"a": 1, "b": 2}`)
	}))
	defer server.Close()
	counted := t.TempDir() + "/runs"
	command := []string{"sh", "-c", `echo run >> "$0"; echo 3`, counted}
	e := reports(engine.Usage{})
	e.logs = func(context.Context, string, engine.LogOptions) ([]string, error) { return []string{"done"}, nil }

	var questions []Question
	for range 50 {
		for _, s := range []domain.ScalingSource{
			{Agent: &domain.AgentSource{Measure: domain.AgentCPUs}},
			{Agent: &domain.AgentSource{Measure: domain.AgentMemoryMiB}},
			{Progress: &domain.ProgressSource{Pattern: "done"}},
			{Progress: &domain.ProgressSource{Pattern: "d"}},
			{Prometheus: &domain.PrometheusSource{URL: server.URL, Query: "up"}},
			{Queue: &domain.QueueSource{HTTP: &domain.HTTPQueue{URL: server.URL + "/q", Path: "a"}}},
			{Queue: &domain.QueueSource{HTTP: &domain.HTTPQueue{URL: server.URL + "/q", Path: "b"}}},
			{Queue: &domain.QueueSource{Command: command}},
		} {
			questions = append(questions, Question{Group: "job", Role: "worker", Source: s})
		}
	}
	questions = append(questions,
		Question{
			Group: "job", Role: "worker",
			Source: domain.ScalingSource{Agent: &domain.AgentSource{Measure: domain.AgentCPUs}},
			Window: new(domain.Duration(time.Minute)),
		},
		Question{
			Group: "job", Role: "worker",
			Source: domain.ScalingSource{Prometheus: &domain.PrometheusSource{URL: server.URL, Query: "down"}},
		})
	got := patient(e).Read(acctest.Bounded(t), noon, jobOf(running("worker", 0)), questions)
	for i, want := range []float64{0, 0, 1.0 / 30, 1.0 / 30, 7, 1, 2, 3} {
		if got[8+i].Value != want {
			t.Errorf("measurement %d is %+v, want %v", i, got[i], want)
		}
	}
	if calls, want := fmt.Sprint(
		e.calls(),
	), "[log of job-worker-0 since 11:59:30 usage of 1m0s usage of 30s]"; calls != want {
		t.Errorf("the engine was asked for %s, want %s", calls, want)
	}
	if got, want := fmt.Sprint(requests), "map[/api/v1/query down:1 /api/v1/query up:1 /q :1]"; got != want {
		t.Errorf("the server was asked %s, want %s", got, want)
	}
	if runs := readFile(t, counted); runs != "run\n" {
		t.Errorf("the command has written %q", runs)
	}
}

// inTime reads with a limit from what hangs, and beside it from what answers at once. On a busy machine even that may
// be late: then it tries a longer limit, a few times at most. It returns the last one.
func inTime(read func(limit time.Duration) (late bool), limit time.Duration) time.Duration {
	for read(limit) && limit < 20*time.Second {
		limit *= 3
	}
	return limit
}

// Values of sources that hang are missing, and delay nothing beyond the limit: neither others nor those
// behind them in the same queue.
func TestWhatHangsIsMissing(t *testing.T) {
	t.Parallel()
	over := make(chan struct{})
	hang := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-over }))
	fine := httptest.NewServer(
		http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = fmt.Fprint(w, 5) }),
	)
	defer fine.Close()
	defer hang.Close()
	defer close(over)
	silent, err := net.Listen("tcp", "127.0.0.1:0") // the kernel accepts connections, but nothing answers
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	// This engine ignores cancellation.
	e := &fake{
		usage: func(context.Context, time.Duration) (engine.Usage, error) { <-over; return engine.Usage{}, nil },
		logs:  func(context.Context, string, engine.LogOptions) ([]string, error) { <-over; return nil, nil },
	}
	endpoint := func(address string) domain.ScalingSource {
		return domain.ScalingSource{Queue: &domain.QueueSource{HTTP: &domain.HTTPQueue{URL: address}}}
	}
	sources := []domain.ScalingSource{
		endpoint(fine.URL),
		{Agent: &domain.AgentSource{Measure: domain.AgentCPUs}},
		{Progress: &domain.ProgressSource{Pattern: "done"}},
		{Prometheus: &domain.PrometheusSource{URL: hang.URL, Query: "up"}},
		endpoint(hang.URL),
		{Queue: &domain.QueueSource{Command: []string{"sleep", "1000"}}},
		{Queue: &domain.QueueSource{Redis: &domain.RedisQueue{Address: silent.Addr().String(), Key: "jobs"}}},
	}
	for i := range 3 * queriesAtOnce {
		sources = append(sources,
			domain.ScalingSource{Prometheus: &domain.PrometheusSource{URL: hang.URL, Query: fmt.Sprint(i)}},
			endpoint(fmt.Sprint(hang.URL, "/", i)))
	}
	var questions []Question
	for _, s := range sources {
		questions = append(questions, Question{Group: "job", Role: "worker", Source: s})
	}
	var got []autoscale.Measurement
	limit := inTime(func(limit time.Duration) (late bool) {
		m := New(e)
		m.Limit = limit
		got = m.Read(acctest.Bounded(t), noon, jobOf(running("worker", 0)), questions)
		return got[0].Why != ""
	}, 2*time.Second)
	if got[0].Value != 5 || got[0].Why != "" {
		t.Errorf("what answers is %+v", got[0])
	}
	for i, measurement := range got[1:] {
		missed(t, measurement, fmt.Sprintf("answer within %s", limit))
		if t.Failed() {
			t.Fatalf("source %d", i+1)
		}
	}
}

// Concurrent reads of the same sources don't interfere.
func TestReadsAtTheSameTime(t *testing.T) {
	var length atomic.Int64
	server := httptest.NewServer(
		http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = fmt.Fprint(w, length.Add(1)) }),
	)
	defer server.Close()
	m := patient(reports(engine.Usage{
		Members: map[string]engine.MemberUsage{"job-worker-0": {CPUs: domain.Instant(new(1.0)), SampledAt: noon}},
	}))
	questions := []Question{
		{
			Group: "job", Role: "worker",
			Source: domain.ScalingSource{Agent: &domain.AgentSource{Measure: domain.AgentCPUs}},
		},
		{
			Source: domain.ScalingSource{Queue: &domain.QueueSource{HTTP: &domain.HTTPQueue{URL: server.URL}}},
			Window: new(domain.Duration(time.Hour)), Aggregation: domain.AggregateMax,
		},
	}
	observation := jobOf(running("worker", 0))
	var all sync.WaitGroup
	for i := range 50 {
		all.Go(func() {
			got := m.Read(acctest.Bounded(t), noon.Add(time.Duration(i)*time.Second), observation, questions)
			if got[0].Value != 1 || got[1].Value < 1 {
				t.Errorf("read %d: %+v", i, got)
			}
		})
	}
	all.Wait()
}

// A question without a source has no answer.
func TestNoSource(t *testing.T) {
	missed(t, read(t, patient(&fake{}), jobOf(), Question{}), "no source")
	missed(t, read(t, patient(&fake{}), jobOf(), Question{Source: domain.ScalingSource{Queue: &domain.QueueSource{}}}),
		"no source")
}
