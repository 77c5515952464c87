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
	// page is the address of the master's page.
	page string
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
		t.Skip("acceptance tests run with TF_ACC=1, as by make test-systems")
	}
	w := acctest.NewWorkspace(t, program())
	acceptance.WithModules(w)
	w.Env("PATH", folder+":"+os.Getenv("PATH"))
	return &sparkLab{w, t, "http://127.0.0.1:17080/json/"}
}

// sparkApplication is an application on the master's page.
type sparkApplication struct {
	Name     string `json:"name"`
	State    string `json:"state"`
	Cores    int    `json:"cores"`
	Started  int64  `json:"starttime"`
	Duration int64  `json:"duration"`
}

// sparkWorker is a worker on the master's page.
type sparkWorker struct {
	ID        string `json:"id"`
	State     string `json:"state"`
	Port      int    `json:"port"`
	Resources map[string]struct {
		Addresses []string `json:"addresses"`
	} `json:"resources"`
}

// sparkPage is the part of the master's page that tests use.
type sparkPage struct {
	Status    string             `json:"status"`
	Workers   []sparkWorker      `json:"workers"`
	Active    []sparkApplication `json:"activeapps"`
	Completed []sparkApplication `json:"completedapps"`
}

// look returns the master's page, or an empty one while it does not answer. Workers that are gone are left out.
func (l *sparkLab) look() sparkPage {
	l.Helper()
	var page sparkPage
	if json.Unmarshal(l.get(l.page), &page) != nil {
		return sparkPage{} // it is ending or starting
	}
	alive := page.Workers[:0]
	for _, worker := range page.Workers {
		if worker.State == "ALIVE" {
			alive = append(alive, worker)
		}
	}
	page.Workers = alive
	return page
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

// await waits until the master's page satisfies a condition, and returns it.
func (l *sparkLab) await(what string, holds func(sparkPage) bool) sparkPage {
	l.Helper()
	var page sparkPage
	acctest.Eventually(l, what, func() bool {
		page = l.look()
		return holds(page)
	})
	return page
}

// withWorkers returns a condition that this many workers are registered with the master.
func withWorkers(n int) func(sparkPage) bool {
	return func(page sparkPage) bool { return len(page.Workers) == n }
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

// said decodes the line about an event in the log of an application's driver, and reports whether there is one.
func (l *sparkLab) said(application, event string, into any) bool {
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
func (l *sparkLab) expectCompleted(page sparkPage, application string, cores int) sparkApplication {
	l.Helper()
	for _, a := range page.Completed {
		if a.Name == application {
			if a.State != "FINISHED" || a.Cores != cores {
				l.Errorf("%s is %s, on %d cores, want FINISHED on %d", application, a.State, a.Cores, cores)
			}
			return a
		}
	}
	l.Fatalf("the master knows no %s that has completed: %+v", application, page)
	return sparkApplication{}
}

func (l *sparkLab) must(err error) {
	l.Helper()
	if err != nil {
		l.Fatal(err)
	}
}
