//go:build linux

package process_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/trainyard/terraform-provider-trainyard/internal/acceptance"
	"github.com/trainyard/terraform-provider-trainyard/internal/acctest"
	"github.com/trainyard/terraform-provider-trainyard/internal/autoscale"
)

// mover is a user's program that moves data between members over some time. The test sets its progress.
type mover struct {
	*httptest.Server

	mu sync.Mutex
	// announced are all announcements of changes, looks counts the requests for progress, and progress is the answer to
	// those by hook; "" if done.
	announced []moved
	looks     int
	progress  map[string]string
}

// moved is an announcement to the mover.
type moved struct {
	ID, Hook string
	From, To int
	Members  []string
}

func newMover(t *testing.T) *mover {
	t.Helper()
	m := &mover{progress: map[string]string{}}
	m.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		m.mu.Lock()
		defer m.mu.Unlock()
		var about moved
		if r.Method == http.MethodPost {
			if err := json.NewDecoder(r.Body).Decode(&about); err != nil {
				t.Errorf("an announcement can't be read: %v", err)
			}
			m.announced = append(m.announced, about)
		} else if i := slices.IndexFunc(m.announced, func(change moved) bool {
			return r.URL.Path == "/changes/"+change.ID
		}); i >= 0 {
			about = m.announced[i]
			m.looks++
		}
		if m.progress[about.Hook] == "" {
			return
		}
		w.Header().Set("Location", "/changes/"+about.ID)
		w.WriteHeader(http.StatusAccepted)
		_, _ = fmt.Fprintf(w, `{"progress": %q}`, m.progress[about.Hook]) // the client may have been killed
	}))
	t.Cleanup(m.Close)
	return m
}

// says sets the progress with a hook; "" if done.
func (m *mover) says(hook, progress string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.progress[hook] = progress
}

// heard returns the announcements so far, and the number of requests for progress.
func (m *mover) heard() ([]moved, int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.announced), m.looks
}

// awaitLooks waits for a few more requests for progress.
func (m *mover) awaitLooks(t *testing.T) {
	t.Helper()
	_, before := m.heard()
	acctest.Eventually(t, "the hook to be asked how it gets on",
		func() bool { _, looks := m.heard(); return looks >= before+2 })
}

// Slow hooks are waited for: before members are removed, and after they are added. If the controller is killed
// meanwhile, the next one continues with the same change.
func TestAccScalingWaitsForHooks(t *testing.T) {
	l := newFollowLab(t)
	d, m := newDial(t, 1), newMover(t)
	m.says("after_addition", "begun")
	m.says("before_removal", "moved 3 of 7 partitions")
	l.apply(theCluster, quiet, follows(fmt.Sprintf(`min = 1
  max      = 6
  scale_in = { stabilisation_window = "0s" }
  hooks = {
    before_removal = { url = "%[1]s/leaving", timeout = "2h" }
    after_addition = { url = "%[1]s/joined", timeout = "2h" }
  }
  %[2]s`, m.URL, d.metrics())))
	l.awaitWorkers(1)
	// shows waits until a command's output contains a text.
	shows := func(text string, command ...string) {
		t.Helper()
		acctest.Eventually(t, fmt.Sprintf("%q to be shown", text), func() bool {
			output, err := exec.CommandContext(t.Context(), l.program().File,
				append(command, "--endpoint", l.workspace.StateDir)...).CombinedOutput()
			if err != nil {
				t.Fatalf("%v: %s", err, output)
			}
			return strings.Contains(string(output), text)
		})
	}
	// atWork waits until a hook is in progress and shown as such, and checks the same after the controller is killed.
	atWork := func(hook, progress string) {
		t.Helper()
		m.awaitLooks(t)
		shows("autoscaled, "+hook+": "+progress[:5], "top", "-once")
		l.killResident("controller")
		m.awaitLooks(t)
		shows("hook "+hook+" is running for change ", "autoscale", "explain", "job/worker")
		shows(": "+progress+"; since ", "autoscale", "explain", "job/worker")
	}

	d.value.Store(3)
	l.awaitWorkers(3)
	atWork("after_addition", "begun")
	d.value.Store(1)
	l.awaitHistory("who holds the members",
		acceptance.Outcomes(autoscale.OutcomeUnchanged, 3, 3, "1 wanted, but a hook is at work"))
	m.says("after_addition", "")
	acctest.Eventually(t, "the hook to hear of the members that go",
		func() bool { announced, _ := m.heard(); return len(announced) == 2 })
	atWork("before_removal", "moved 3 of 7 partitions")
	l.awaitWorkers(3)
	l.workspace.ExpectNoChange("with members that are about to go")
	m.says("before_removal", "")
	l.awaitWorkers(1)
	l.awaitHistory("the removal", acceptance.Outcomes(autoscale.OutcomeDone, 3, 1, ""))
	l.expectCounts(1, 3, 1)
	announced, _ := m.heard()
	for i := range announced {
		if len(announced[i].ID) != 26 {
			t.Errorf("the ID of a change is %q", announced[i].ID)
		}
		announced[i].ID = ""
	}
	if diff := cmp.Diff([]moved{
		{Hook: "after_addition", From: 1, To: 3, Members: []string{"job-worker-1", "job-worker-2"}},
		{Hook: "before_removal", From: 3, To: 1, Members: []string{"job-worker-2", "job-worker-1"}},
	}, announced); diff != "" {
		t.Errorf("announcements (-want +got):\n%s", diff)
	}
	l.workspace.ExpectNoChange("without them")
}
