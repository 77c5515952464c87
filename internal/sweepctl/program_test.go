//go:build linux

package sweepctl_test

import (
	"bytes"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/trainyard/terraform-provider-trainyard/internal/acctest"
	"github.com/trainyard/terraform-provider-trainyard/internal/acctest/patience"
	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/process"
	"github.com/trainyard/terraform-provider-trainyard/internal/sweep"
)

func TestMain(m *testing.M) { acctest.Main(m) }

// lab returns the state directory of a cluster in which nothing runs, with a sweep "lr" created by somebody else: one
// run succeeded, one failed, and one waits.
func lab(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	e, err := process.Open(domain.ClusterRef{Name: "lab"}, engine.Settings{StateDir: dir}, process.Program{})
	must(t, err)
	put(t, e, domain.ClusterDocument{Spec: domain.Cluster{
		Name: "lab", Engine: process.Name, Hosts: map[string]domain.Host{
			"local": {Address: "127.0.0.1", Capacity: domain.Capacity{CPUs: 2, MemoryMiB: 1000}},
		},
	}})
	spec := domain.Sweep{
		Cluster: "lab", Name: "lr", Template: domain.Template{Command: []string{"train"}},
		Objective: &domain.Objective{Pattern: "([0-9.]+)"}, MaxParallel: new(1),
		Runs: map[string]map[string]string{"a": {"LR": "1"}, "b": {"LR": "2"}, "c": {"LR": "3"}},
	}
	bare, chunks, err := sweep.Split(spec)
	must(t, err)
	doc := domain.SweepDocument{Spec: bare, ID: "id", By: "ops@gpu1", Count: 3, MinRun: 1, Since: time.Now()}
	for _, chunk := range chunks {
		doc.Chunks = append(doc.Chunks, chunk.Name)
		put(t, e, chunk)
	}
	put(t, e, doc)
	at := time.Now()
	ended := func(key string, state domain.RunState, change func(r *domain.Run)) domain.Run {
		run := domain.Run{
			State: state, Revision: 1, Seal: sweep.Seal(spec.Run(key)), Attempts: 1, Batch: 1,
			Assignment: &domain.Assignment{Host: "local", Port: 20000}, ExitCode: new(0),
			StartedAt: new(at.Add(-90 * time.Second)), FinishedAt: &at,
		}
		change(&run)
		return run
	}
	put(t, e, domain.SweepRecord{Sweep: "lr", Part: "0", ID: "id", Runs: map[string]domain.Run{
		"b": ended("b", domain.RunSucceeded, func(r *domain.Run) { r.Value = new(0.5) }),
		"a": ended("a", domain.RunFailed, func(r *domain.Run) { r.ExitCode, r.Reason = new(3), "exit code 3\x1b[2J" }),
	}})
	return dir
}

func put[T any, P domain.Document[T]](t *testing.T, e engine.Engine, doc T) {
	t.Helper()
	_, err := engine.Put[T, P](t.Context(), e, doc)
	must(t, err)
}

// TestList checks that the program shows what is stored, the best run first, in printable characters.
func TestList(t *testing.T) {
	dir := lab(t)
	out, complaint, err := run(t, "ls", "--endpoint", dir)
	if err != nil || !strings.Contains(out, "lr     1 queued, 1 succeeded, 1 failed") ||
		!strings.Contains(out, "ops@gpu1") {
		t.Errorf("%v: %s\n%s", err, complaint, out)
	}
	out, complaint, err = run(t, "ls", "lr", "--endpoint", dir)
	lines := strings.Split(out, "\n")
	if err != nil || len(lines) != 7 || strings.Contains(out, "\x1b") {
		t.Fatalf("%v: %s\n%s", err, complaint, out)
	}
	for i, want := range []string{
		"RUN  STATE      VALUE  ATTEMPT  HOST   TOOK   REASON", "b    succeeded  0.5    1        local  1m30s",
		"a    failed     –      1        local  1m30s  exit code 3", "c    queued     –      0        –      –",
	} {
		if !strings.HasPrefix(lines[i], want) {
			t.Errorf("line %d is %q, want %q", i+1, lines[i], want)
		}
	}
	if want := "3 runs: 1 queued, 1 succeeded, 1 failed; left –"; lines[5] != want {
		t.Errorf("the last line is %q, want %q", lines[5], want)
	}
}

// TestRefused checks that impossible commands are rejected with what is possible.
func TestRefused(t *testing.T) {
	dir := lab(t)
	for args, want := range map[string]string{
		"":                                   "sweep needs a command, ls, pause, resume, cancel or results",
		"stop lr":                            `unknown command "stop" of sweep`,
		"cancel":                             "cancel needs a sweep, or a run of one as SWEEP/RUN, such as lr/seed-1",
		"ls lr/a":                            "ls takes one sweep, or none for a list of them",
		"ls none":                            `there is no sweep "none"; there are ["lr"]`,
		"cancel lr --timeout 0s":             "--timeout must be positive, got 0s",
		"cancel lr":                          `sweep "lr" was created by ops@gpu1, and you are `,
		"cancel lr/z --force":                `sweep "lr" has no run "z"`,
		"results":                            "results needs one sweep, or a run of one as SWEEP/RUN, such as lr/seed-1",
		"results lr/a lr/b":                  "results needs one sweep",
		"results lr/z":                       `sweep "lr" has no run "z"`,
		"results lr":                         `sweep "lr" keeps no results: declare results, such as { path = "results" }`,
		"ls lr --output x.tar":               "--output is only for results",
		"pause lr/c --cluster other --force": `no cluster "other"`,
	} {
		out, complaint, err := run(t, append(strings.Fields(args), "--endpoint", dir)...)
		if err == nil || !strings.Contains(complaint, want) {
			t.Errorf("%s: %v: %s\n%s", args, err, complaint, out)
		}
	}
	// To ask takes a part of the time, which a busy machine may make long.
	for timeout := time.Second; ; timeout *= 4 {
		out, complaint, err := run(t, "cancel", "lr/c", "--force", "--timeout", timeout.String(), "--endpoint", dir)
		if err != nil && strings.Contains(complaint, "the controller has not carried it out yet") {
			break
		}
		if !strings.Contains(complaint, "deadline exceeded") || timeout > patience.Limit {
			t.Fatalf("where there is no controller: %v: %s\n%s", err, complaint, out)
		}
	}
	if out, complaint, err := run(t, "resume", "lr", "--endpoint", dir, "--force"); err != nil ||
		out != "sweep lr has no run to resume\n" {
		t.Errorf("%v: %s\n%s", err, complaint, out)
	}
}

// run runs the program, and returns its output.
func run(t *testing.T, args ...string) (out, complaint string, err error) {
	t.Helper()
	command := exec.CommandContext(t.Context(), acctest.Build(t, acctest.Provider),
		append([]string{"sweep"}, args...)...)
	command.Env = append(os.Environ(), "TZ=UTC")
	var stdout, stderr bytes.Buffer
	command.Stdout, command.Stderr = &stdout, &stderr
	err = command.Run()
	return stdout.String(), stderr.String(), err
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
