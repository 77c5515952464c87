//go:build linux

package acceptance

import (
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/trainyard/terraform-provider-trainyard/internal/agent/nvml/fakenvml"
)

// DriveCard makes a device show, until the test ends, the memory that processes hold according to a file, with a PID
// and MiB per line, and what somebody else holds.
func DriveCard(t testing.TB, file string, foreign func() int64, show func(used int64, processes []fakenvml.Process)) {
	t.Helper()
	done := make(chan struct{})
	t.Cleanup(func() { <-done })
	ctx := t.Context()
	go func() {
		defer close(done)
		look := time.NewTicker(20 * time.Millisecond)
		defer look.Stop()
		for last := ""; ; {
			select {
			case <-ctx.Done():
				return
			case <-look.C:
			}
			content, _ := os.ReadFile(file)
			var processes []fakenvml.Process
			used := foreign()
			for line := range strings.Lines(string(content)) {
				var p fakenvml.Process
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
	}()
}
