//go:build linux

package explain_test

import (
	"bytes"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/trainyard/terraform-provider-trainyard/internal/acctest"
	"github.com/trainyard/terraform-provider-trainyard/internal/autoscale"
	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/process"
)

func TestMain(m *testing.M) { acctest.Main(m) }

// TestProgram checks that the program explains what is stored of a cluster in which nothing runs.
func TestProgram(t *testing.T) {
	stateDir := t.TempDir()
	e, err := process.Open(domain.ClusterRef{Name: "lab"}, engine.Settings{StateDir: stateDir}, process.Program{})
	must(t, err)
	_, err = engine.Put(t.Context(), e, domain.ClusterDocument{Spec: domain.Cluster{Name: "lab", Engine: process.Name}})
	must(t, err)
	_, err = engine.Put(t.Context(), e, domain.AutoscalingPolicyDocument{Spec: domain.AutoscalingPolicy{
		Cluster: "lab", Group: "job", Role: "worker", Min: 2, Max: 8, DryRun: true,
	}})
	must(t, err)
	archive, err := autoscale.OpenArchive(nil, time.Now())
	must(t, err)
	archive.Add(autoscale.NewEntry("job/worker", time.Now(), 4,
		autoscale.Decision{From: 4, To: 6, Asked: []autoscale.Asked{
			{Name: "cpu", Value: 92.1, Age: time.Second, Count: 6, Known: true, Why: "92.1 of 60"},
		}}))
	put, _, err := archive.Pack(time.Now())
	must(t, err)
	for _, chunk := range put {
		_, err := e.Put(t.Context(),
			engine.Item{Key: engine.Key{Kind: autoscale.HistoryKind, Name: chunk.Name}, Data: chunk.Data})
		must(t, err)
	}

	out, complaint, err := run(t, "explain", "--endpoint", stateDir, "job/worker")
	if err != nil || complaint != "" {
		t.Fatalf("%v: %s", err, complaint)
	}
	for _, want := range []string{
		"  4 → 6\n  cpu  92.1  1s old  asks for 6  92.1 of 60\n", "count    –, of 2 to 8\n",
		"dry run  decisions are recorded", "next     a decision at ",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is not in\n%s", want, out)
		}
	}
	out, complaint, err = run(t, "explain", "--endpoint", stateDir, "--json")
	if err != nil || complaint != "" ||
		!strings.HasPrefix(out, `{"policy":"job/worker",`) || strings.Count(out, "\n") != 1 {
		t.Errorf("as JSON: %v: %s\n%s", err, complaint, out)
	}
	out, complaint, err = run(t, "explain", "--endpoint", stateDir, "job/ps")
	if err == nil || out != "" || !strings.Contains(complaint,
		`cluster lab has no autoscaling policy job/ps and no history of one; the policies are ["job/worker"]`) {
		t.Errorf("of another role: %v: %s\n%s", err, complaint, out)
	}
	_, complaint, err = run(t, "explain", "--endpoint", stateDir, "\x1b[2Jjob/ps")
	if err == nil || !strings.Contains(complaint, "no autoscaling policy \uFFFD[2Jjob/ps") {
		t.Errorf("of a role that is a command for terminals: %v: %q", err, complaint)
	}
}

// run runs the provider's command autoscale.
func run(t *testing.T, args ...string) (out, complaint string, err error) {
	t.Helper()
	command := exec.CommandContext(t.Context(), acctest.Build(t, acctest.Provider),
		append([]string{"autoscale"}, args...)...)
	var stdout, stderr bytes.Buffer
	command.Stdout, command.Stderr = &stdout, &stderr
	command.Env = append(os.Environ(), "HOME="+t.TempDir())
	err = command.Run()
	return stdout.String(), stderr.String(), err
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
