//go:build linux

package supervisor

import (
	"crypto/rand"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/trainyard/terraform-provider-trainyard/internal/acctest"
	"github.com/trainyard/terraform-provider-trainyard/internal/agent/containers"
	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
)

// TestContainerMemoryUnseen: a container with a limit that was killed before its memory was watched ran out of it,
// unless somebody asked for its end.
func TestContainerMemoryUnseen(t *testing.T) {
	asked := make(chan struct{})
	close(asked)
	for name, c := range map[string]struct {
		begun, watched bool
		asked          chan struct{}
		limit          int64
		code           int
		want           int64
	}{
		"killed at once":                  {begun: true, limit: 32, code: 137, want: 32},
		"killed while watched":            {begun: true, watched: true, limit: 32, code: 137},
		"killed without a supervisor":     {limit: 32, code: 137},
		"killed at once, without a limit": {begun: true, code: 137},
		"killed at once, as requested":    {begun: true, asked: asked, limit: 32, code: 137},
		"failed at once":                  {begun: true, limit: 32, code: 1},
	} {
		t.Run(name, func(t *testing.T) {
			i := &containerInstance{folder: t.TempDir(), asked: c.asked, forced: make(chan struct{}), begun: c.begun}
			if c.watched {
				i.starved = &starvation{outcome: make(chan bool, 1)}
				i.starved.outcome <- false
			}
			i.spec.Resources.Limits = domain.Resources{MemoryMiB: c.limit}
			now := session{facts: containers.Facts{Survive: true}}
			r := i.end(containers.Container{Ended: true, ExitCode: c.code}, now)
			if r.outOf != c.want || (r.note == "") != (c.want == 0) {
				t.Errorf("it ran out of %d MiB (%q), want %d", r.outOf, r.note, c.want)
			}
		})
	}
}

// TestContainerMemory: a container exceeded its limit, unless that can't have been the cause.
func TestContainerMemory(t *testing.T) {
	for name, c := range map[string]struct {
		limit     int64
		neverFull bool
		want      string
	}{
		"with a limit":     {32, false, "out of memory: its limit is 32 MiB"},
		"within its limit": {32, true, "out of memory: the host had no memory left"},
		"without a limit":  {0, false, "out of memory: the host had no memory left"},
	} {
		for _, noticed := range []bool{false, true} { // by the Engine
			i := &containerInstance{folder: t.TempDir()}
			i.starved = &starvation{outcome: make(chan bool, 1), neverFull: c.neverFull}
			i.starved.outcome <- true
			i.spec.Resources.Limits = domain.Resources{MemoryMiB: c.limit}
			r := i.end(containers.Container{Ended: true, ExitCode: lostExitCode, OutOfMemory: noticed},
				session{facts: containers.Facts{Survive: true}})
			if r.note != c.want || (r.outOf > 0) != strings.Contains(c.want, "its limit") {
				t.Errorf("%s: %q, out of %d MiB", name, r.note, r.outOf)
			}
		}
	}
}

// TestStarvation: memory ran out in a version 1 cgroup that is gone, whether before or after the watch began. If
// somebody else has killed its process, it did not.
func TestStarvation(t *testing.T) {
	const memory = "/sys/fs/cgroup/memory"
	if _, err := os.Stat(filepath.Join(memory, memoryV1)); err != nil || os.Geteuid() != 0 {
		t.Skip("this needs root, and version 1 of cgroups")
	}
	for name, c := range map[string]struct {
		before, after string // what runs in the cgroup before and after the watch begins
		want          bool
	}{
		"before the watch":    {before: "tail /dev/zero", want: true},
		"while it is watched": {after: "tail /dev/zero", want: true},
		"for another reason":  {after: "kill -KILL $$"},
	} {
		t.Run(name, func(t *testing.T) {
			group := filepath.Join(memory, "trainyard-starvation-"+rand.Text())
			if err := os.Mkdir(group, 0o755); err != nil {
				t.Fatal(err)
			}
			defer os.Remove(group)
			if err := os.WriteFile(filepath.Join(group, "memory.limit_in_bytes"), []byte("8M"), 0); err != nil {
				t.Fatal(err)
			}
			run := func(script string) {
				// A shell that is killed itself, or whose child is.
				_ = exec.CommandContext(t.Context(), "sh", "-c", "echo $$ >"+group+"/cgroup.procs; "+script+"; :").Run()
			}
			run(c.before)
			s := newStarvation(filepath.Join(group, memoryV1))
			if s == nil {
				t.Fatal("it can't be watched")
			}
			defer s.close()
			run(c.after)
			acctest.Eventually(t, "the end of the cgroup", func() bool { return os.Remove(group) == nil })
			if got := s.look(t.Context()); got != c.want {
				t.Errorf("killed for lack of memory: %t, want %t", got, c.want)
			}
		})
	}
	if newStarvation(filepath.Join(memory, "trainyard-gone", memoryV1)) != nil {
		t.Error("a cgroup that is gone is watched")
	}
}

// TestMemoryCounter: the kernel shows an exiting process in the root of version 1 cgroups, whose counter is another's.
func TestMemoryCounter(t *testing.T) {
	for groups, want := range map[string]string{
		"9:memory:/d/a\n4:cpu,cpuacct:/d/a\n0::/d/a\n": "/sys/fs/cgroup/memory/d/a/memory.oom_control",
		"0::/s.slice/d-a.scope\n":                      "/sys/fs/cgroup/s.slice/d-a.scope/memory.events",
		"9:memory:/\n4:cpu,cpuacct:/\n0::/d/a\n":       "",
		"0::/d/a (deleted)\n":                          "",
		"4:cpu,cpuacct:/d/a\n":                         "",
	} {
		if got := memoryCounter(groups); got != want {
			t.Errorf("the counter of %q is %q, want %q", groups, got, want)
		}
	}
}
