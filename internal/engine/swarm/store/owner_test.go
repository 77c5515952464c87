//go:build linux

package store

import (
	"os"
	"os/exec"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/trainyard/terraform-provider-trainyard/internal/agent/proctree"
)

// childOwner starts a process that does nothing until it is killed.
func childOwner(t *testing.T) (Owner, *exec.Cmd) {
	t.Helper()
	child := exec.CommandContext(t.Context(), "sleep", "infinity")
	must(t, child.Start())
	t.Cleanup(func() {
		_ = child.Process.Kill() // it may have ended
		_ = child.Wait()         // it was killed
	})
	process, err := proctree.Lookup(child.Process.Pid)
	must(t, err)
	return Owner{Machine: ThisProcess().Machine, Process: process.PID, StartTime: process.StartTime}, child
}

func TestEndedOwner(t *testing.T) {
	self := ThisProcess()
	if self.Machine == "" || self.Process != os.Getpid() || self.StartTime == 0 {
		t.Fatalf("this process is not known: %+v", self)
	}
	if self.endedFor(self) {
		t.Error("this process has ended")
	}
	o, child := childOwner(t)
	if o.endedFor(self) {
		t.Error("a process that lives has ended")
	}
	// An ID that was given to another process.
	reused := o
	if reused.StartTime++; !reused.endedFor(self) {
		t.Error("a process whose id another one has by now has not ended")
	}

	must(t, child.Process.Kill())
	must(t, unix.Waitid(unix.P_PID, o.Process, nil, unix.WEXITED|unix.WNOWAIT, nil))
	if !o.endedFor(self) {
		t.Error("a process that nobody has waited for yet (zombie) has not ended")
	}
	_ = child.Wait() // it was killed
	if !o.endedFor(self) {
		t.Error("a process that was killed has not ended")
	}
	other, unknown := o, o
	other.Machine, unknown.Machine = "other", ""
	for name, pair := range map[string][2]Owner{
		"of another machine": {other, self},
		"of an unknown one":  {unknown, self},
		"for an unknown one": {o, {}},
		"both unknown":       {unknown, {}},
	} {
		if pair[0].endedFor(pair[1]) {
			t.Errorf("a process %s is known to have ended", name)
		}
	}
}
