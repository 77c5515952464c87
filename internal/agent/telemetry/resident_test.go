//go:build linux

package telemetry

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"math"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/trainyard/terraform-provider-trainyard/internal/acctest/patience"
	"github.com/trainyard/terraform-provider-trainyard/internal/bounded"
	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
)

// settings are those of a host that measures itself, with these GPUs.
func settings(gpus GPUSource) Settings {
	if gpus == nil {
		gpus = func(context.Context) ([]domain.GPU, error) { return nil, nil }
	}
	return Settings{Proc: ownProc, Disk: "/", GPUs: gpus}
}

func newResident(t *testing.T) *Resident {
	t.Helper()
	r, err := NewResident(t.Context(), settings(nil), "node1", slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestResident(t *testing.T) {
	busy, idle := t.Name()+"-busy", t.Name()+"-idle"
	start(t, busy, "while :; do :; done & echo ready; read never")
	start(t, idle, `hold=$(head -c 50000000 /dev/zero | tr "\0" x); echo ready; read never`)

	begin := time.Now()
	r := newResident(t)
	report := r.Report(Interval)
	// A machine under load may leave the busy instance without a processor for a while, and the idle one on its way to
	// its read.
	for *report.Instances[busy].CPUs.Last == 0 || *report.Instances[idle].CPUs.Last != 0 {
		if time.Since(begin) > patience.Limit {
			t.Fatalf("instances that compute and wait use %v and %v CPUs", *report.Instances[busy].CPUs.Last,
				*report.Instances[idle].CPUs.Last)
		}
		if err := r.refresh(t.Context(), time.Now()); err != nil {
			t.Fatal(err)
		}
		report = r.Report(Interval)
	}
	end := time.Now()

	host := report.Host
	if use := report.Instances[idle]; *use.MemoryMiB.Last < 45 || *use.MemoryMiB.Last > float64(host.TotalMemoryMiB) {
		t.Errorf("an instance that waits and holds 48 MiB uses %v MiB", *use.MemoryMiB.Last)
	}
	if use := report.Instances[busy]; *use.CPUs.Last > float64(host.TotalCPUs) || *use.MemoryMiB.Last <= 0 ||
		*use.MemoryMiB.Last > 45 {
		t.Errorf("a shell that computes uses %v CPUs and %v MiB on a host of %d CPUs", *use.CPUs.Last,
			*use.MemoryMiB.Last, host.TotalCPUs)
	}
	if *host.CPUs.Last <= 0 || *host.CPUs.Last > float64(host.TotalCPUs) || host.TotalCPUs < runtime.NumCPU() {
		t.Errorf("%v of %d CPUs of the host are busy", *host.CPUs.Last, host.TotalCPUs)
	}
	for what, m := range map[string]domain.Measure{"memory": host.MemoryMiB, "disk": host.DiskMiB} {
		if m.Last == nil || *m.Last <= 0 {
			t.Errorf("%s of the host: %v", what, m.Last)
		}
	}
	if host.Load.Last == nil || *host.Load.Last < 0 { // 0 after a while without work
		t.Errorf("load of the host: %v", host.Load.Last)
	}
	if host.ReceivedBps.Last == nil || host.SentBps.Last == nil ||
		*host.MemoryMiB.Last >= float64(host.TotalMemoryMiB) || *host.DiskMiB.Last > float64(host.TotalDiskMiB) {
		t.Errorf("the host uses %+v", host)
	}
	if report.SampledAt.Before(begin) || report.SampledAt.After(end) || report.Node != "node1" {
		t.Errorf("node %s, sampled at %s, want between %s and %s", report.Node, report.SampledAt, begin, end)
	}
}

// TestResidentLooksForInstances: a query for new instances gets those that were just started, and none that has ended.
func TestResidentLooksForInstances(t *testing.T) {
	r := newResident(t)
	socket := filepath.Join(t.TempDir(), strings.Repeat("long", 30), "agent.sock")
	serveAt(t, socket, r.Handler())
	asked := func() Report {
		t.Helper()
		report, err := Ask(t.Context(), socket, Query{Window: time.Minute, New: true})
		if err != nil {
			t.Fatal(err)
		}
		return report
	}
	name := t.Name()
	t.Run("while it runs", func(t *testing.T) {
		start(t, name, "echo ready; read never")
		if report := asked(); report.Instances[name].MemoryMiB.Last == nil || report.Instances[name].CPUs.Last == nil {
			t.Errorf("an instance that has just been started uses %+v", report.Instances[name])
		}
	})
	// Other queries don't search for processes.
	t.Run("unless they are asked for", func(t *testing.T) {
		start(t, name+"-unknown", "echo ready; read never")
		if report, err := Ask(t.Context(), socket, Query{Window: time.Minute}); err != nil ||
			report.Instances[name+"-unknown"].CPUs.Last != nil {
			t.Errorf("an instance that nobody has looked for uses %+v, %v", report.Instances[name+"-unknown"], err)
		}
	})
	if report := asked(); slices.Contains(slices.Collect(maps.Keys(report.Instances)), name) {
		t.Errorf("an instance that has ended uses %+v", report.Instances[name])
	}
	report, err := Ask(t.Context(), socket, Query{})
	if err != nil || report.Samples != 1 {
		t.Errorf("without a window there are %d samples, %v", report.Samples, err)
	}
}

// TestFirstAnswerKnowsGPUMemory: samples before the first read of the GPUs lack the instances' GPU memory. An answer
// after that read has it, even if nobody asks for new instances.
func TestFirstAnswerKnowsGPUMemory(t *testing.T) {
	name := t.Name()
	start(t, name, "echo ready; read never")
	r := newResident(t)
	if early := r.Report(Interval); early.Instances[name].MemoryMiB.Last == nil ||
		early.Instances[name].GPUMemoryMiB.Last != nil {
		t.Fatalf("before the GPUs were read, an instance uses %+v", early.Instances[name])
	}
	socket := filepath.Join(t.TempDir(), "agent.sock")
	serveAt(t, socket, r.Handler())
	report, err := Ask(t.Context(), socket, Query{Window: time.Minute})
	if used := report.Instances[name].GPUMemoryMiB.Last; err != nil || used == nil || *used != 0 {
		t.Errorf("the first answer says that an instance uses %v MiB of GPU memory, want 0: %v", used, err)
	}
}

// TestRefreshIsShared: a query for new instances reuses a search that began after it arrived, whoever requested that.
func TestRefreshIsShared(t *testing.T) {
	begin := time.Now()
	r := newResident(t)
	for _, step := range []struct {
		name  string
		since time.Time
		looks bool
	}{
		{"asked before the last look", begin, false},
		{"asked after it", time.Now(), true},
		{"asked before that", begin, false},
	} {
		before := r.refreshed
		if err := r.refresh(t.Context(), step.since); err != nil {
			t.Fatal(err)
		}
		if looked := r.refreshed != before; looked != step.looks {
			t.Errorf("%s: it looked: %v", step.name, looked)
		}
	}
}

// TestSamplesTakeTime: a sample right after another one would cover too short a time, and is skipped.
func TestSamplesTakeTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newResident(t)
		for _, step := range []struct {
			after time.Duration
			taken bool
		}{{0, false}, {moment - 1, false}, {1, true}, {1, false}, {Interval, true}} {
			before := r.Report(Interval).SampledAt
			time.Sleep(step.after) //nolint:forbidigo // time is the test's
			if err := r.step(); err != nil {
				t.Fatal(err)
			}
			if taken := r.Report(Interval).SampledAt.After(before); taken != step.taken {
				t.Errorf("%s later a sample was taken: %v", step.after, taken)
			}
		}
	})
}

// TestResidentIsReplaced: another agent takes the place of one that died and left its socket behind.
func TestResidentIsReplaced(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "agent.sock")
	for _, node := range []string{"first", "second"} {
		serveAt(t, socket, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			_, _ = w.Write([]byte(`{"node":"` + node + `"}`))
		}))
		if report, err := Ask(t.Context(), socket, Query{}); err != nil || report.Node != node {
			t.Errorf("%q answers, %v; want %q", report.Node, err, node)
		}
	}
	if _, err := Ask(t.Context(), socket+"2", Query{}); err == nil ||
		!strings.Contains(err.Error(), "does not answer") {
		t.Errorf("where there is none: %v", err)
	}
}

func serveAt(t *testing.T, socket string, handler http.Handler) {
	t.Helper()
	mkdir(t, filepath.Dir(socket))
	listener, err := Listen(socket)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- bounded.Serve(ctx, listener, handler) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

func TestWindows(t *testing.T) {
	handler := newResident(t).Handler()
	for query, want := range map[string]int{
		"": http.StatusOK, "?window=1s": http.StatusOK, "?window=10m": http.StatusOK,
		"?window=0s": http.StatusBadRequest, "?window=11m": http.StatusBadRequest, "?window=-1m": http.StatusBadRequest,
		"?window=soon": http.StatusBadRequest,
	} {
		answer := httptest.NewRecorder()
		handler.ServeHTTP(answer, httptest.NewRequest(http.MethodGet, reportPath+query, nil))
		if answer.Code != want {
			t.Errorf("%q: %d %s", query, answer.Code, answer.Body)
		}
	}
}

func TestResidentEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := NewResident(ctx, settings(nil), "", slog.New(slog.DiscardHandler)); !errors.Is(err, context.Canceled) {
		t.Errorf("%v, want the context's error", err)
	}
}

// TestResidentWhileGPUsHang: a read of the GPUs that does not end blocks nothing else, and queries get those of the
// last read.
func TestResidentWhileGPUsHang(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		driver := make(chan []domain.GPU)
		gpus := func(ctx context.Context) ([]domain.GPU, error) {
			select {
			case found := <-driver:
				return found, nil
			case <-ctx.Done():
				return nil, context.Cause(ctx)
			}
		}
		r, err := NewResident(ctx, settings(gpus), "node1", slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		go r.Run(ctx)
		asked := func(patience time.Duration) Report {
			t.Helper()
			begin, answer := time.Now(), httptest.NewRecorder()
			asking, cancel := context.WithTimeout(ctx, patience)
			defer cancel()
			r.Handler().ServeHTTP(answer, httptest.NewRequestWithContext(asking, http.MethodGet, reportPath, nil))
			report, err := ReadReport(answer.Body.Bytes())
			if took := time.Since(begin); err != nil || took > min(patience, lookPatience) ||
				report.Host.TotalCPUs == 0 || time.Since(report.SampledAt) > 2*Interval {
				t.Errorf("it answered after %s with %+v, %v", took, report, err)
			}
			return report
		}
		for _, patience := range []time.Duration{peerPatience, time.Second, peerPatience} {
			if report := asked(patience); !report.Starting || report.GPUs.Unknown != notLooked {
				t.Errorf("before the first look ended, GPUs are not known: %q", report.GPUs.Unknown)
			}
		}
		// The clients that went away have cancelled nothing: the first read is still in progress.
		driver <- []domain.GPU{{Device: domain.Device{UUID: "GPU-1"}}}
		synctest.Wait()
		if report := asked(peerPatience); report.Starting || report.GPUs.Unknown != "" || len(report.GPUs.GPUs) != 1 {
			t.Errorf("while the next look hangs, there are %+v", report.GPUs)
		}
		driver <- nil
		synctest.Wait()
		if report := asked(peerPatience); len(report.GPUs.GPUs) != 0 {
			t.Errorf("after it there are %+v", report.GPUs)
		}
	})
}

// TestOnceWaits: a caller without a resident waits for the GPUs, however long that takes.
func TestOnceWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		report, err := Once(t.Context(), settings(func(context.Context) ([]domain.GPU, error) {
			time.Sleep(time.Minute) //nolint:forbidigo // time is the test's
			return []domain.GPU{{Device: domain.Device{UUID: "GPU-1"}, Utilisation: new(50.0)}}, nil
		}))
		if err != nil || report.Starting || len(report.GPUs.GPUs) != 1 ||
			report.Devices["GPU-1"].Utilisation.Last == nil {
			t.Errorf("it reports %+v, measured as %+v, %v", report.GPUs, report.Devices, err)
		}
	})
}

// TestHistory has more samples than are kept, in which an instance and a GPU come and go.
func TestHistory(t *testing.T) {
	h := newHistory()
	begin := time.Unix(1_700_000_000, 0)
	at := func(n int) time.Time { return begin.Add(time.Duration(n) * Interval) }
	const last = 2*capacity + 10
	for n := range last + 1 {
		s := sample{at: at(n), instances: map[string]use{"stays": {cpus: float64(n % 2), memory: 5}}}
		s.host[hostCPUs], s.host[hostLoad] = float64(n), math.NaN()
		gpus := domain.HostGPUs{GPUs: []domain.GPU{
			{
				Device: domain.Device{UUID: "GPU-1"}, Utilisation: new(float64(n % 100)),
				Processes: []domain.GPUProcess{},
			},
		}}
		if n < 100 {
			s.instances["ended long ago"] = use{cpus: 1, memory: 1}
			gpus.GPUs = append(gpus.GPUs, domain.GPU{Device: domain.Device{UUID: "GPU-2"}})
		}
		if n < last-5 {
			s.instances["ended"] = use{cpus: 1, memory: 1}
		}
		h.add(s, gpus)
	}
	report := h.report(10*Interval, at(last))
	cpus := report.Host.CPUs
	if report.Samples != 11 || !report.Since.Equal(at(last-10)) || !report.SampledAt.Equal(at(last)) ||
		*cpus.Last != float64(last) || *cpus.Mean != float64(last-5) || *cpus.Max != float64(last) {
		t.Errorf("%d samples from %s to %s: %v %v %v", report.Samples, report.Since, report.SampledAt, *cpus.Last,
			*cpus.Mean, *cpus.Max)
	}
	if report.Host.Load.Last != nil {
		t.Errorf("what is not known is %v", *report.Host.Load.Last)
	}
	if use := report.Instances["stays"]; *use.CPUs.Max != 1 || *use.MemoryMiB.P95 != 5 || *use.GPUMemoryMiB.Last != 0 {
		t.Errorf("an instance uses %+v", use)
	}
	if _, found := report.Instances["ended"]; found {
		t.Error("an instance that has ended is reported")
	}
	if h.instances["ended"] == nil || h.instances["ended long ago"] != nil || h.gpus["GPU-2"] != nil ||
		len(h.seen) != 3 {
		t.Errorf("remembered are %v", slices.Sorted(maps.Keys(h.seen)))
	}
	if all := h.report(Memory, at(last)); all.Samples != capacity {
		t.Errorf("%d samples are remembered, want %d", all.Samples, capacity)
	}
	if late := h.report(Interval, at(last+100)); late.Samples != 1 || !late.SampledAt.Equal(at(last)) {
		t.Errorf("a resident that measures no more reports %d samples, the last at %s", late.Samples, late.SampledAt)
	}
}

// TestHistoryOfQuestions: frequent queries, which take samples too, don't shorten the time that is kept.
func TestHistoryOfQuestions(t *testing.T) {
	h := newHistory()
	begin := time.Unix(1_700_000_000, 0)
	const often = Interval / 5
	last := begin.Add(2 * Memory)
	for now := begin; !now.After(last); now = now.Add(often) {
		h.add(sample{at: now}, domain.HostGPUs{})
	}
	report := h.report(Memory, last)
	if remembered := report.SampledAt.Sub(report.Since); !report.SampledAt.Equal(last) ||
		remembered < Memory-2*Interval {
		t.Errorf("%s are remembered, up to %s, want %s up to %s", remembered, report.SampledAt, Memory, last)
	}
}

// TestResidentGoesOn: an agent continues the history of its predecessor.
func TestResidentGoesOn(t *testing.T) {
	s := settings(nil)
	s.History = filepath.Join(t.TempDir(), "history")
	begin := time.Now().Add(-time.Minute)
	if err := measured(10, begin).save(s.History); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		ctx, cancel := context.WithCancel(t.Context())
		r, err := NewResident(ctx, s, "node1", slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		report := r.Report(Memory)
		if report.Samples < 11 || report.Since.After(begin) || report.SampledAt.Before(begin.Add(time.Minute)) {
			t.Errorf("it reports %d samples from %s to %s", report.Samples, report.Since, report.SampledAt)
		}
		cancel()
		r.Run(ctx)
	}
}

// FuzzHandler: any request gets an answer, or an error with the reason.
func FuzzHandler(f *testing.F) {
	r, err := NewResident(f.Context(), settings(nil), "node1", slog.New(slog.DiscardHandler))
	if err != nil {
		f.Fatal(err)
	}
	handler := r.Handler()
	for _, query := range []string{
		"", "window=", "window=0", "window=soon", "window=9223372036854775807h", "window=1s&window=x", "%zz", ";",
	} {
		f.Add(query)
	}
	f.Fuzz(func(t *testing.T, query string) {
		request := httptest.NewRequest(http.MethodGet, reportPath, nil)
		request.URL.RawQuery = query
		answer := httptest.NewRecorder()
		handler.ServeHTTP(answer, request)
		if code := answer.Code; code != http.StatusOK && (code != http.StatusBadRequest || answer.Body.Len() > 4096) {
			t.Errorf("%q: %d %.200s", query, code, answer.Body)
		}
		if answer.Code == http.StatusOK {
			if _, err := ReadReport(answer.Body.Bytes()); err != nil {
				t.Errorf("%q: %v", query, err)
			}
		}
	})
}
