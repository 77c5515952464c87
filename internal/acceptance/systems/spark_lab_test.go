//go:build linux

package systems_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/trainyard/terraform-provider-trainyard/internal/acceptance"
	"github.com/trainyard/terraform-provider-trainyard/internal/acctest"
	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/process"
)

// sparkLab is a workspace with the modules, in which Spark, and python3 with XGBoost, are on the PATH.
type sparkLab struct {
	*acctest.Workspace
	t *testing.T
	// endpoint is the URL of the master's JSON endpoint.
	endpoint string
}

// sparkPorts are attributes of a Spark that runs beside others: ports, and JVMs that don't optimise code that runs only
// once.
const sparkPorts = `
  env     = { JDK_JAVA_OPTIONS = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC" }
  master  = { port = 17077, web_port = 17080, daemon_memory_mib = 256%s }
  worker  = { web_port = 17090, daemon_memory_mib = 256%s }
`

func newSpark(t *testing.T, program func() string) *sparkLab {
	t.Helper()
	folder := acceptance.Python(t, "spark")
	if os.Getenv("TF_ACC") == "" {
		t.Skip("acceptance tests run with TF_ACC=1, as by make test-matrix")
	}
	w := acctest.NewWorkspace(t, program())
	acceptance.WithModules(w)
	w.Env("PATH", folder+":"+os.Getenv("PATH"))
	return &sparkLab{w, t, "http://127.0.0.1:17080/json/"}
}

// sparkApplication is an application as the master reports it.
type sparkApplication struct {
	Name     string `json:"name"`
	State    string `json:"state"`
	Cores    int    `json:"cores"`
	Started  int64  `json:"starttime"`
	Duration int64  `json:"duration"`
}

// sparkWorker is a worker as the master reports it.
type sparkWorker struct {
	ID        string `json:"id"`
	State     string `json:"state"`
	Port      int    `json:"port"`
	Resources map[string]struct {
		Addresses []string `json:"addresses"`
	} `json:"resources"`
}

// sparkStatus is the part of the master's JSON endpoint that tests use.
type sparkStatus struct {
	Status    string             `json:"status"`
	Workers   []sparkWorker      `json:"workers"`
	Active    []sparkApplication `json:"activeapps"`
	Completed []sparkApplication `json:"completedapps"`
}

// look returns what the master reports; empty while it does not answer.
func (l *sparkLab) look() sparkStatus {
	l.Helper()
	return sparkStatusOf(l.get(l.endpoint))
}

// sparkStatusOf returns what the master reports at its JSON endpoint; empty while it does not answer. Workers that are
// gone are omitted.
func sparkStatusOf(content []byte) sparkStatus {
	var status sparkStatus
	if json.Unmarshal(content, &status) != nil {
		return sparkStatus{} // it is ending or starting
	}
	alive := status.Workers[:0]
	for _, worker := range status.Workers {
		if worker.State == "ALIVE" {
			alive = append(alive, worker)
		}
	}
	status.Workers = alive
	return status
}

// get returns the content of an address; nil while nobody answers.
func (l *sparkLab) get(address string) []byte {
	l.Helper()
	request, err := http.NewRequestWithContext(l.t.Context(), http.MethodGet, address, nil)
	l.must(err)
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return nil
	}
	return body
}

// await waits until what the master reports satisfies a condition, and returns it.
func (l *sparkLab) await(what string, holds func(sparkStatus) bool) sparkStatus {
	l.Helper()
	var status sparkStatus
	acctest.Eventually(l, what, func() bool {
		status = l.look()
		return holds(status)
	})
	return status
}

// withWorkers returns a condition that this many workers are registered with the master.
func withWorkers(n int) func(sparkStatus) bool {
	return func(status sparkStatus) bool { return len(status.Workers) == n }
}

// engine returns the engine of the cluster.
func (l *sparkLab) engine() engine.Engine {
	l.Helper()
	program := process.Program{File: acctest.Build(l, acctest.Provider), Version: "dev"}
	e, err := process.Open(domain.ClusterRef{Name: "lab"}, engine.Settings{StateDir: l.StateDir}, program)
	l.must(err)
	return e
}

// kill kills the workspace's JVM that has these words among its arguments.
func (l *sparkLab) kill(words ...string) {
	l.Helper()
	l.signal(syscall.SIGKILL, words...)
}

// signal sends a signal to the workspace's JVM that has these words among its arguments.
func (l *sparkLab) signal(signal syscall.Signal, words ...string) {
	l.Helper()
	sent := 0
	for pid, what := range acctest.Processes(l, l.StateDir) {
		matches := strings.Contains(what, "java")
		for _, word := range words {
			matches = matches && strings.Contains(what+" ", " "+word+" ")
		}
		if matches && syscall.Kill(pid, signal) == nil {
			sent++
		}
	}
	if sent != 1 {
		l.Fatalf("%d processes have %q among their arguments, want one", sent, words)
	}
}

// decodeEvent decodes the line about an event in the log of an application's driver, and reports whether there is one.
func (l *sparkLab) decodeEvent(application, event string, into any) bool {
	l.Helper()
	lines, err := l.engine().Logs(l.t.Context(), application+"-driver-0", engine.LogOptions{})
	l.must(err)
	for _, line := range lines {
		if strings.HasPrefix(line, fmt.Sprintf(`{"event": %q,`, event)) {
			l.must(json.Unmarshal([]byte(line), into))
			return true
		}
	}
	return false
}

// expectCompleted fails unless an application has finished on this many cores.
func (l *sparkLab) expectCompleted(status sparkStatus, application string, cores int) sparkApplication {
	l.Helper()
	for _, a := range status.Completed {
		if a.Name == application {
			if a.State != "FINISHED" || a.Cores != cores {
				l.Errorf("%s is %s, on %d cores, want FINISHED on %d", application, a.State, a.Cores, cores)
			}
			return a
		}
	}
	l.Fatalf("the master knows no %s that has completed: %+v", application, status)
	return sparkApplication{}
}

func (l *sparkLab) must(err error) {
	l.Helper()
	if err != nil {
		l.Fatal(err)
	}
}
