package report

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/html"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
	"github.com/trainyard/terraform-provider-trainyard/internal/overview"
	"github.com/trainyard/terraform-provider-trainyard/internal/reconcile"
	"github.com/trainyard/terraform-provider-trainyard/internal/sweep"
)

func last(value float64) domain.Measure { return domain.Measure{Last: &value} }

var noon = time.Date(2026, 11, 28, 12, 0, 0, 0, time.UTC)

// lab is a cluster of two hosts with a group that has this many workers, one of them failed, a policy, and a sweep.
func lab(workers int) reading {
	hour := noon.Add(-time.Hour)
	r := reading{
		name: "lab",
		Reading: overview.Reading{
			At: noon,
			Cluster: domain.Cluster{Name: "lab", Engine: "swarm", Hosts: map[string]domain.Host{
				"gpu1": {Role: domain.HostManager, Labels: map[string]string{"rack": "a"}}, "gpu2": {},
			}},
			Usage: engine.Usage{
				Hosts: map[string]engine.HostUsage{
					"gpu1": {
						CPUs: last(12), TotalCPUs: 16, MemoryMiB: last(61_440), TotalMemoryMiB: 65_536,
						DiskMiB: last(1 << 20), TotalDiskMiB: 2 << 20, Load: last(3.5),
					},
					"gpu2": {Reason: "the agent does not answer", GPUsReason: "the agent does not answer"},
				},
				GPUs: map[string]engine.GPUUsage{
					"GPU-a": {
						Host: "gpu1", TotalMemoryMiB: 46_068,
						Utilisation: domain.Measure{Last: new(87.0), Mean: new(41.0)}, MemoryMiB: last(11_517),
						TemperatureC: last(63), PowerW: last(212.4),
					},
					"GPU-b": {Host: "gpu1", TotalMemoryMiB: 46_068, Reason: "fallen off the bus (XID 79)"},
				},
				Members: map[string]engine.MemberUsage{},
			},
			Devices: map[string]domain.GPU{"GPU-a": {Index: 0}, "GPU-b": {Index: 1}},
			Policies: map[string]domain.AutoscalingPolicyDocument{
				"mnist/worker": {Spec: domain.AutoscalingPolicy{Group: "mnist", Role: "worker", Min: 2, Max: 8}},
			},
		},
		gpus: map[string]domain.HostGPUs{"gpu1": {GPUs: []domain.GPU{
			{Index: 0, Device: domain.Device{UUID: "GPU-a", Model: "NVIDIA A40", MemoryMiB: 46_068}},
			{Index: 1, Device: domain.Device{UUID: "GPU-b", Model: "NVIDIA A40", MemoryMiB: 46_068}},
		}}},
		pools: map[string]domain.GPUPoolDocument{"a40": {
			Spec: domain.GPUPool{Name: "a40"},
			Devices: map[string][]domain.Device{
				"gpu1": {{UUID: "GPU-a"}, {UUID: "GPU-b"}},
				"gpu2": {{UUID: "GPU-c", Model: "NVIDIA A40", MemoryMiB: 46_068}},
			},
		}},
		progress: map[string]domain.Progress{"mnist": {Phase: domain.PhaseDegraded, Reason: "mnist-worker-1 failed"}},
		policies: map[string]string{"mnist/worker": "3 → 4\n  cpu  93  asks for 4\n"},
		logs:     map[string][]string{"mnist-worker-1": {"step 70", "CUDA error: <device lost> & more"}},
		sweeps: overview.Sweeps{
			Waits: map[string]string{"lr": "no GPU of pool a40 is free"},
			Found: map[string]reconcile.Sweep{"lr": {
				Spec: domain.Sweep{
					Name: "lr", Objective: &domain.Objective{},
					Runs: map[string]map[string]string{"a": {}, "b": {}, "c": {}},
				},
				Runs: map[string]domain.Run{
					"a": {
						Seal: sweep.Seal(domain.RunSpec{Key: "a"}), State: domain.RunSucceeded, Value: new(0.97),
						StartedAt: &hour, FinishedAt: &noon, Attempts: 1,
						Assignment: &domain.Assignment{Host: "gpu1", GPUs: "GPU-a"},
					},
					"b": {
						Seal: sweep.Seal(domain.RunSpec{Key: "b"}), State: domain.RunFailed, Reason: "exit code 1",
						Attempts: 3,
					},
				},
			}},
		},
	}
	group := domain.GroupDocument{
		Spec: domain.Group{Name: "mnist", Framework: "tensorflow"}, Counts: map[string]int{"worker": workers},
		Assignments: map[string]domain.Assignment{},
	}
	for i := range workers {
		o := domain.Observed{
			Name: domain.MemberName("mnist", "worker", i), Group: "mnist", Role: "worker", Index: i, Host: "gpu1",
			State: domain.StateRunning, StartedAt: &hour,
		}
		if i == 1 {
			o.State, o.LastError, o.Restarts = domain.StateFailed, "exit code 1", 3
		}
		group.Assignments[o.Name] = domain.Assignment{Host: "gpu1"}
		r.Observed = append(r.Observed, o)
		r.Usage.Members[o.Name] = engine.MemberUsage{
			CPUs: last(1.5), MemoryMiB: last(2048), GPUMemoryMiB: last(0),
		}.Of(o)
	}
	if workers > 0 {
		group.Assignments["mnist-worker-0"] = domain.Assignment{Host: "gpu1", GPUs: "GPU-a"}
	}
	r.Groups = map[string]domain.GroupDocument{"mnist": group}
	return r
}

// written returns the report of a reading.
func written(t *testing.T, r reading) string {
	t.Helper()
	var text strings.Builder
	if err := write(&text, r.page()); err != nil {
		t.Fatal(err)
	}
	return text.String()
}

// texts returns the text of the first element with this ID, its parts separated by spaces.
func texts(t *testing.T, page, id string) string {
	t.Helper()
	root, err := html.Parse(strings.NewReader(page))
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for n := range root.Descendants() {
		for _, a := range n.Attr {
			if a.Key == "id" && a.Val == id {
				for d := range n.Descendants() {
					if d.Type == html.TextNode {
						all = append(all, strings.Fields(d.Data)...)
					}
				}
			}
		}
	}
	return strings.Join(all, " ")
}

func TestPage(t *testing.T) {
	page := written(t, lab(3))
	for id, want := range map[string][]string{
		"notes": {
			"gpu2: the agent does not answer", "GPU gpu1:1: fallen off the bus (XID 79)", "mnist-worker-1: exit code 1",
		},
		"hosts": {
			"gpu1 manager rack=a CPUs 12 of 16", "Memory 60.0 GiB of 64.0 GiB", "Disk 1.0 TiB of 2.0 TiB", "Load 3.5",
			"GPU 0 NVIDIA A40 87 % busy, mean 41 %; 63 °C, 212 W 11.2 GiB of 45.0 GiB mnist-worker-0",
			"GPU 1 NVIDIA A40 fallen off the bus (XID 79)", "gpu2 the agent does not answer",
			"GPU ? NVIDIA A40 not found on its host",
		},
		"groups": {
			"mnist degraded tensorflow 2 running, 1 failed; 3.00 CPUs, 4.0 GiB memory", "mnist-worker-1 failed",
			"mnist-worker-0 running 1.0 h gpu1 0 1.50 2.0 GiB 0 MiB",
			"exit code 1 last 2 lines step 70 CUDA error: <device lost> & more",
		},
		"policies": {"mnist/worker 3 of 2–8 3 → 4 cpu 93 asks for 4"},
		"sweeps": {
			"1 queued, 1 succeeded, 1 failed", "no GPU of pool a40 is free", "a succeeded 0.97 1 gpu1:0 1h0m0s",
			"b failed – 3 – – exit code 1",
			"c queued – 0 – – no GPU of pool a40 is free",
		},
	} {
		got := texts(t, page, id)
		for _, text := range want {
			if !strings.Contains(got, text) {
				t.Errorf("%s: %q is not in\n%s", id, text, got)
			}
		}
	}
	for _, want := range []string{
		"<b>1 of 2</b> hosts answer", "<b>1 of 3</b> GPUs allocated", "<b>2</b> GPUs in trouble",
		"<b>1</b> group degraded", "<b>1</b> sweep", `width="94%"`, `width="33.33%"`,
	} {
		if !strings.Contains(page, want) {
			t.Errorf("%q is not in the page", want)
		}
	}
}

// The file loads nothing from elsewhere, and stays small.
func TestPageIsSelfContained(t *testing.T) {
	page := written(t, lab(1000))
	if size := len(page); size > 2<<20 {
		t.Errorf("the report of 1,000 members has %d bytes", size)
	}
	for _, no := range []string{"http://", "https://", "src=", "url(", "@import", "ZgotmplZ"} {
		if at := strings.Index(page, no); at >= 0 {
			t.Errorf("%q is in it: …%s…", no, page[max(at-40, 0):min(at+40, len(page))])
		}
	}
}

// Text from members is neither interpreted as HTML nor by a terminal that prints the file.
func TestPageEscapes(t *testing.T) {
	r := lab(2)
	const hostile = "</pre><script>alert(1)</script>\x1b[2J\u202e"
	r.logs["mnist-worker-1"] = []string{hostile}
	r.policies["mnist/worker"] = hostile
	r.Observed[1].LastError = hostile
	r.Cluster.Hosts["gpu1"] = domain.Host{Labels: map[string]string{hostile: hostile}}
	page := written(t, r)
	if n := strings.Count(page, "<script"); n != 1 {
		t.Errorf("it has %d scripts", n)
	}
	if strings.ContainsAny(page, "\x1b\u202e") {
		t.Error("it has control characters")
	}
	if !strings.Contains(texts(t, page, "policies"), "<script>alert(1)</script>") {
		t.Error("the text is not shown")
	}
}

// A cluster about which nothing is known yet has a page as well.
func TestPageOfNothing(t *testing.T) {
	page := written(t, reading{
		name:    "lab",
		Reading: overview.Reading{At: noon, Cluster: domain.Cluster{Hosts: map[string]domain.Host{"a": {}}}},
	})
	if got := texts(t, page, "hosts"); !strings.Contains(got, "a CPUs – Memory – Disk – Load –") {
		t.Errorf("it shows %q", got)
	}
	for _, id := range []string{"notes", "groups", "policies", "sweeps"} {
		if got := texts(t, page, id); got != "" {
			t.Errorf("%s: %s", id, got)
		}
	}
}

// Sweeps with many runs show the best, and say how many they leave out.
func TestManyRuns(t *testing.T) {
	r := lab(0)
	runs := map[string]map[string]string{}
	for i := range mostRuns + 7 {
		runs[fmt.Sprintf("run-%05d", i)] = nil
	}
	r.sweeps.Found["many"] = reconcile.Sweep{Spec: domain.Sweep{Name: "many", Runs: runs}}
	page := r.page()
	if many := page.Sweeps[1]; len(many.Runs) != mostRuns || many.Hidden != 7 {
		t.Errorf("it shows %d runs, and hides %d", len(many.Runs), many.Hidden)
	}
}

// TestPausedRunsKeepTheirGPUs checks that GPUs of a paused run are not shown as free.
func TestPausedRunsKeepTheirGPUs(t *testing.T) {
	r := lab(0)
	r.sweeps.Found["lr"].Runs["c"] = domain.Run{
		State: domain.RunPaused, Assignment: &domain.Assignment{Host: "gpu1", GPUs: "GPU-b"},
	}
	if got := r.owners()["GPU-b"]; !slices.Equal(got, []string{"lr/c"}) {
		t.Errorf("the GPU is allocated to %q", got)
	}
}
