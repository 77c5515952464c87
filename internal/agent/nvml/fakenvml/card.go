//go:build linux

package fakenvml

import (
	"context"
	"fmt"
	"os"
	"strings"
	"syscall"
	"time"
)

// allocating is the script of [Allocating].
const allocating = `#!/bin/sh
'%[1]s' - $$ <<'END' || exit 1
import fcntl, os, sys
with open(os.environ["CARD"], "r+") as file:
    fcntl.flock(file, fcntl.LOCK_EX)
    taken = [line.split() for line in file]
    used = sum(int(mib) for pid, mib in taken if os.path.exists("/proc/" + pid))
    if used + %[2]d > %[3]d:
        sys.exit("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate %[2]d MiB.")
    print(sys.argv[1], %[2]d, file=file, flush=True)
END
[ -z "$GATE" ] || : <"$GATE"
exec '%[1]s' "$@"
`

// Allocating returns a shell script that allocates memory on a card, as CUDA would, before it runs a Python, and fails
// if processes have allocated too much of the limit. In its environment, CARD is the file that records who has how
// much, for [FollowAllocations], and GATE, if set, a FIFO that it waits on.
func Allocating(python string, mib, limitMiB int64) []byte {
	return fmt.Appendf(nil, allocating, python, mib, limitMiB)
}

// FollowAllocations shows, until ctx is done, the memory that processes hold according to a file, with a PID and MiB
// per line, and what somebody else holds.
func FollowAllocations(
	ctx context.Context, file string, foreign func() int64, show func(used int64, processes []Process),
) {
	look := time.NewTicker(20 * time.Millisecond)
	defer look.Stop()
	for last := ""; ; {
		select {
		case <-ctx.Done():
			return
		case <-look.C:
		}
		content, _ := os.ReadFile(file)
		var processes []Process
		used := foreign()
		for line := range strings.Lines(string(content)) {
			var p Process
			if _, err := fmt.Sscan(line, &p.PID, &p.MiB); err == nil && syscall.Kill(p.PID, 0) == nil {
				processes = append(processes, p)
				used += p.MiB
			}
		}
		if now := fmt.Sprint(used, processes); now != last {
			last = now
			show(used, processes)
		}
	}
}
