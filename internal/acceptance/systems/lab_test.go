//go:build linux

package systems_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/trainyard/terraform-provider-trainyard/internal/acctest"
	"github.com/trainyard/terraform-provider-trainyard/internal/agent/proctree"
	"github.com/trainyard/terraform-provider-trainyard/internal/agent/statedir"
	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/process"
	"github.com/trainyard/terraform-provider-trainyard/internal/reconcile"
)

// lab is the cluster "lab" of a workspace, on this machine, bypassing Terraform.
type lab struct {
	*testing.T
	engine engine.Engine
	files  statedir.Dir
}

func labOf(t *testing.T, w *acctest.Workspace) *lab {
	t.Helper()
	l := &lab{T: t, files: statedir.Dir{Root: w.StateDir, Cluster: "lab"}}
	var err error
	l.engine, err = process.Open(domain.ClusterRef{Name: l.files.Cluster}, engine.Settings{StateDir: l.files.Root},
		process.Program{File: acctest.Build(t, acctest.Provider), Version: "dev"})
	l.must(err)
	return l
}

func (l *lab) must(err error) {
	l.Helper()
	if err != nil {
		l.Fatal(err)
	}
}

// read returns the current state of a group.
func (l *lab) read(group string) reconcile.Group {
	l.Helper()
	read, err := reconcile.Reconciler{Engine: l.engine}.Read(l.Context(), group)
	l.must(err)
	return read
}

// kill kills a member's command, waits until the member has another instance, and returns the time of the kill.
func (l *lab) kill(member string) (at time.Time) {
	l.Helper()
	before := l.state(member)
	acctest.Eventually(l, "the command of "+member, func() bool {
		table, err := proctree.Scan()
		l.must(err)
		for _, p := range table[before.Instance] {
			if p.Parent == before.PID {
				at = time.Now()
				return syscall.Kill(p.PID, syscall.SIGKILL) == nil
			}
		}
		return false
	})
	acctest.Eventually(l, member+" to run again", func() bool {
		after := l.state(member)
		return after.Instance != before.Instance && after.State == domain.StateRunning
	})
	return at
}

// lose removes a member behind Terraform's back.
func (l *lab) lose(member string) {
	l.Helper()
	l.must(os.Remove(l.files.Document(statedir.Specs, member)))
	l.awaitEnd(member)
}

// awaitEnd waits until a member that is removed has ended.
func (l *lab) awaitEnd(member string) {
	l.Helper()
	acctest.Eventually(l, "the end of "+member, func() bool {
		_, err := statedir.Read[statedir.State](l.files.Document(statedir.States, member))
		return err != nil
	})
}

// state returns the recorded state of a member.
func (l *lab) state(member string) statedir.State {
	l.Helper()
	state, err := statedir.Read[statedir.State](l.files.Document(statedir.States, member))
	l.must(err)
	return state
}

// trainingLines returns a member's lines about its training, oldest first.
func (l *lab) trainingLines(member string) []trained {
	l.Helper()
	lines, err := l.engine.Logs(context.WithoutCancel(l.Context()), member, engine.LogOptions{})
	l.must(err)
	return trainedOf(lines)
}

// trainedOf returns the lines about a training. Others are from TensorFlow itself.
func trainedOf(lines []string) []trained {
	var all []trained
	for _, line := range lines {
		var entry trained
		if json.Unmarshal([]byte(line), &entry) == nil {
			all = append(all, entry)
		}
	}
	return all
}

var lastCheckpoint = regexp.MustCompile(`(?m)^model_checkpoint_path: ".*-(\d+)"$`)

// checkpointIn returns the step of the last checkpoint in a folder, from which a training would resume; 0 if there is
// none. TensorFlow names it in the file "checkpoint", after it has written the checkpoint itself.
func checkpointIn(t testing.TB, folder string) (last int) {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(folder, "checkpoint"))
	if errors.Is(err, fs.ErrNotExist) {
		return 0
	}
	if err != nil {
		t.Fatal(err)
	}
	found := lastCheckpoint.FindSubmatch(content)
	if found == nil {
		t.Fatalf("the last checkpoint in %s is %q", folder, content)
	}
	last, err = strconv.Atoi(string(found[1]))
	if err != nil {
		t.Fatal(err)
	}
	return last
}

// awaitCheckpoint waits for a checkpoint of this step or later in a folder, and returns the checkpoint's step.
func awaitCheckpoint(t testing.TB, folder string, step int) (found int) {
	t.Helper()
	acctest.Eventually(t, fmt.Sprintf("a checkpoint of step %d in %s", step, folder), func() bool {
		found = checkpointIn(t, folder)
		return found >= step
	})
	return found
}

// expectResumed kills a member, and fails unless the training resumes from a checkpoint in a folder, according to the
// chief: no step before the checkpoint may be repeated.
func (l *lab) expectResumed(victim, chief, folder string) {
	l.Helper()
	last := awaitCheckpoint(l, folder, checkpointIn(l, folder)+1)
	killed := float64(l.kill(victim).UnixMilli()) / 1000
	var before, again int
	acctest.Eventually(l, "the training to go on after the death of "+victim, func() bool {
		before, again = 0, 0
		for _, entry := range l.trainingLines(chief) {
			switch {
			case entry.Time <= killed:
				before = entry.Step
			case entry.Step < last:
				l.Fatalf("after the death of %s, there is step %d again, before the checkpoint of step %d", victim,
					entry.Step, last)
			case again == 0:
				again = entry.Step
			}
		}
		return again > 0 && checkpointIn(l, folder) > before
	})
	l.Logf("%s died at step %d, and training went on at step %d, after the checkpoint of step %d",
		victim, before, again, last)
}

// alter changes a file in a folder that is not writable.
func (l *lab) alter(file, content string) {
	l.Helper()
	l.must(os.Chmod(file, 0o600))
	l.must(os.WriteFile(file, []byte(content), 0o600))
}
