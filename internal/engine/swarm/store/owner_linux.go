package store

import (
	"errors"
	"fmt"
	"os"
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/trainyard/terraform-provider-trainyard/internal/agent/proctree"
)

// identify fills in what distinguishes this process, whose ID is set, from all others.
func (o *Owner) identify() {
	// In a /proc of another PID namespace, our ID is somebody else's.
	if id, err := os.Readlink("/proc/self"); err != nil || id != strconv.Itoa(o.Process) {
		return
	}
	boot, bootErr := proctree.BootID("/proc")
	namespace, namespaceErr := os.Readlink("/proc/self/ns/pid")
	process, processErr := proctree.Lookup(o.Process)
	if errors.Join(bootErr, namespaceErr, processErr) != nil {
		return
	}
	o.Machine, o.StartTime = boot+" "+namespace, process.StartTime
}

// ended reports whether a process of this machine has ended.
func (o Owner) ended() bool {
	process, err := proctree.Lookup(o.Process)
	if err == nil {
		return process.StartTime != o.StartTime
	}
	// If the system hides other users' processes (hidepid), one that can't be found may still exist.
	return errors.Is(err, proctree.ErrGone) && (visible(o.Process) || errors.Is(unix.Kill(o.Process, 0), unix.ESRCH))
}

func visible(process int) bool {
	_, err := os.Stat(fmt.Sprintf("/proc/%d", process))
	return err == nil
}
