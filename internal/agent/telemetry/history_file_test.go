package telemetry

import (
	"bytes"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
)

// measured returns a history of some samples, the last of them at this time.
func measured(samples int, last time.Time) *history {
	h := newHistory()
	for n := range samples {
		at := last.Add(time.Duration(n-samples+1) * Interval)
		s := sample{
			at: at, instances: map[string]use{"runs": {cpus: float64(n), memory: 5, received: 100, sent: math.NaN()}},
		}
		s.host[hostCPUs], s.host[hostLoad] = float64(n), math.NaN()
		gpu := domain.GPU{Device: domain.Device{UUID: "GPU-1"}, Utilisation: new(50.0)}
		h.add(s, domain.HostGPUs{GPUs: []domain.GPU{gpu}})
	}
	return h
}

func TestHistoryFile(t *testing.T) {
	folder := t.TempDir()
	file := filepath.Join(folder, "history")
	now := time.Now()
	if h, err := loadHistory(file, now); err != nil || h.taken != 0 {
		t.Errorf("where there is none, there are %d samples, %v", h.taken, err)
	}
	for _, samples := range []int{0, 1, 100, capacity + 10} {
		before := measured(samples, now)
		if err := before.save(file); err != nil {
			t.Fatal(err)
		}
		after, err := loadHistory(file, now)
		if err != nil {
			t.Fatal(err)
		}
		want, got := before.report(Memory, now), after.report(Memory, now)
		if diff := cmp.Diff(want, got, cmpopts.EquateApproxTime(0)); diff != "" {
			t.Errorf("%d samples are read back as others (-want +got):\n%s", samples, diff)
		}
		// It can be continued.
		for _, h := range []*history{before, after} {
			h.add(sample{at: now.Add(Interval), instances: map[string]use{"runs": {cpus: 7}}}, domain.HostGPUs{})
		}
		want, got = before.report(Memory, now.Add(Interval)), after.report(Memory, now.Add(Interval))
		if diff := cmp.Diff(want, got, cmpopts.EquateApproxTime(0)); diff != "" {
			t.Errorf("after %d samples and another, the report differs (-want +got):\n%s", samples, diff)
		}
	}
	left, err := os.ReadDir(folder)
	if err != nil || len(left) != 1 {
		t.Errorf("there are the files %v, %v", left, err)
	}
}

// TestEarlierHistory: the history of a version that measured less is continued, with the missing quantities unknown.
func TestEarlierHistory(t *testing.T) {
	file, now := filepath.Join(t.TempDir(), "history"), time.Now()
	earlier := measured(10, now)
	earlier.instances["runs"] = earlier.instances["runs"][:instanceReceived]
	if err := earlier.save(file); err != nil {
		t.Fatal(err)
	}
	h, err := loadHistory(file, now)
	if err != nil {
		t.Fatal(err)
	}
	if runs := h.report(Memory, now).Instances["runs"]; *runs.CPUs.Max != 9 || runs.ReceivedBps.Max != nil {
		t.Errorf("it used %+v", runs)
	}
	h.add(sample{at: now.Add(Interval), instances: map[string]use{"runs": {cpus: 7, received: 3}}}, domain.HostGPUs{})
	if runs := h.report(Memory, now.Add(Interval)).Instances["runs"]; *runs.CPUs.Max != 9 ||
		*runs.ReceivedBps.Mean != 3 {
		t.Errorf("going on, it used %+v", runs)
	}
}

// TestHistoryThatIsNone: a history that can't be continued gives the reason, and an empty history.
func TestHistoryThatIsNone(t *testing.T) {
	now := time.Now()
	saved := func(h *history) []byte {
		file := filepath.Join(t.TempDir(), "history")
		if err := h.save(file); err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	whole := saved(measured(10, now))
	more := measured(10, now)
	more.gpus["GPU-1"] = widened(more.gpus["GPU-1"], gpuQuantities+1)
	elsewhere := measured(10, now)
	elsewhere.next = capacity
	for name, test := range map[string]struct {
		text []byte
		want string
	}{
		"empty":                  {nil, "EOF"},
		"broken off":             {whole[:len(whole)/2], "EOF"},
		"something else":         {[]byte("none"), ""},
		"of a later version":     {saved(more), `"GPU-1" has more quantities`},
		"of more places":         {saved(elsewhere), "can't be at position 600"},
		"of what is yet to come": {saved(measured(10, now.Add(time.Hour))), "in the future"},
		"endless":                {bytes.Repeat([]byte{0}, 65<<20), "more than"},
	} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "history")
			if err := os.WriteFile(file, test.text, 0o600); err != nil {
				t.Fatal(err)
			}
			h, err := loadHistory(file, now)
			if err == nil || !strings.Contains(err.Error(), test.want) || h.taken != 0 {
				t.Errorf("%d samples, %v; want an error with %q", h.taken, err, test.want)
			}
		})
	}
}
