package meter

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/trainyard/terraform-provider-trainyard/internal/acctest"
	"github.com/trainyard/terraform-provider-trainyard/internal/autoscale"
	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
)

// Agents are asked once a second, and no Read waits longer than its limit for one that hangs: it uses the
// previous report, with its age.
func TestAgentsThatHang(t *testing.T) {
	answers := make(chan error)
	e := &fake{usage: func(ctx context.Context, _ time.Duration) (engine.Usage, error) {
		if ctx.Err() != nil {
			t.Error("it was asked for no time")
		}
		err := <-answers
		return engine.Usage{Members: map[string]engine.MemberUsage{"job-worker-0": uses(1, 1, 1, 0)}}, err
	}}
	m, observation := New(e), jobOf(running("worker", 0))
	m.Limit = 300 * time.Millisecond
	questions := []Question{
		{
			Group: "job", Role: "worker",
			Source: domain.ScalingSource{Agent: &domain.AgentSource{Measure: domain.AgentCPUs}},
		},
	}
	at := func(after time.Duration) autoscale.Measurement {
		for tries := 1; ; tries++ {
			begun := time.Now()
			got := m.Read(acctest.Bounded(t), noon.Add(after), observation, questions)[0]
			// On a busy machine it may end when even what is known is waited for no longer.
			if time.Since(begun) < m.Limit+settling || tries == 20 {
				return got
			}
		}
	}
	asked := func(want int) {
		t.Helper()
		if got := len(e.calls()); got != want {
			t.Errorf("the agents were asked %d times, want %d", got, want)
		}
	}
	settled := func() { // the answer is in, and the next Read asks again
		t.Helper()
		acctest.Eventually(t, "the answer", func() bool {
			m.usages.mu.Lock()
			defer m.usages.mu.Unlock()
			return closed(m.usages.of[domain.DefaultAgentWindow].done)
		})
	}
	missed(t, at(0), "querying the hosts' agents: no answer within 300ms")
	missed(t, at(10*time.Second), "no answer within 300ms")
	asked(1) // not again, as the first request has no answer yet
	answers <- nil
	settled()
	if got := at(500 * time.Millisecond); got.Value != 1 || !got.At.Equal(noon) {
		t.Errorf("within a second of the answer: %+v", got)
	}
	asked(1)
	if got := at(5 * time.Second); got.Value != 1 || !got.At.Equal(noon) {
		t.Errorf("while it hangs again: %+v", got)
	}
	asked(2)
	answers <- errors.New("no agent answers")
	settled()
	missed(t, at(5500*time.Millisecond), "querying the hosts' agents: no agent answers")
	asked(2)
}

// When the caller goes away, its request goes on for the next one.
func TestAgentsAreAskedForAll(t *testing.T) {
	ended := make(chan error, 1)
	e := &fake{usage: func(ctx context.Context, _ time.Duration) (engine.Usage, error) {
		<-t.Context().Done()
		ended <- ctx.Err()
		return engine.Usage{}, nil
	}}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	got := patient(e).Read(ctx, noon, jobOf(running("worker", 0)), []Question{
		{
			Group: "job", Role: "worker",
			Source: domain.ScalingSource{Agent: &domain.AgentSource{Measure: domain.AgentCPUs}},
		},
	})[0]
	missed(t, got, "context canceled")
	t.Cleanup(func() {
		if err := <-ended; err != nil {
			t.Errorf("the question ended with who asked it: %v", err)
		}
	})
}

// Windows that nobody asks for any more are forgotten.
func TestUsagesAreForgotten(t *testing.T) {
	m := patient(reports(engine.Usage{}))
	for i := range 100 {
		if _, err := m.usages.get(acctest.Bounded(t), noon.Add(time.Duration(i)*time.Minute),
			time.Duration(i)*time.Second); err != nil {
			t.Fatal(err)
		}
	}
	if got := len(m.usages.of); got > 2 {
		t.Errorf("%d windows are remembered", got)
	}
}

func TestLoads(t *testing.T) {
	m := patient(reports(engine.Usage{
		Members: map[string]engine.MemberUsage{
			"job-worker-0": {CPUs: domain.MeasureOf([]float64{1, 3})}, "job-worker-1": {Reason: "gone"},
		},
		Hosts: map[string]engine.HostUsage{
			"a": {CPUs: domain.MeasureOf([]float64{1, 3}), TotalCPUs: 8}, "b": {Reason: "down", TotalCPUs: 8},
			"c": {CPUs: domain.Instant(new(1.0))},
		},
	}))
	members, hosts, err := m.Loads(acctest.Bounded(t))
	if got, want := fmt.Sprint(members, hosts, err), "map[job-worker-0:2] map[a:25] <nil>"; got != want {
		t.Errorf("the loads are %s, want %s", got, want)
	}
	broken := &fake{usage: func(context.Context, time.Duration) (engine.Usage, error) {
		return engine.Usage{}, errors.New("no agents")
	}}
	if members, hosts, err := patient(broken).Loads(acctest.Bounded(t)); err == nil || members != nil || hosts != nil {
		t.Errorf("without agents, the loads are %v and %v, %v", members, hosts, err)
	}
}
