//go:build linux

package supervisor

import (
	"crypto/rand"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/trainyard/terraform-provider-trainyard/internal/agent/limits"
)

// TestOutOfMemory: an instance without a memory limit that the kernel killed ran out of the host's memory.
func TestOutOfMemory(t *testing.T) {
	if available, reason := limits.Available(); !available {
		t.Skipf("limits can't be enforced here: %s", reason)
	}
	for name, c := range map[string]struct {
		limit int64
		want  string
	}{
		"with a limit":    {32, "out of memory: its limit is 32 MiB"},
		"without a limit": {0, "out of memory: the host had no memory left"},
	} {
		t.Run(name, func(t *testing.T) {
			group, err := limits.Create("test-"+rand.Text(), 0, 32)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				if err := group.Delete(); err != nil {
					t.Error(err)
				}
			})
			const hungry = `for file in "$@"; do echo $$ >"$file" || exit 9; done; exec tail /dev/zero`
			_ = exec.Command("/bin/sh", append([]string{"-c", hungry, "sh"}, group.JoinFiles()...)...).Run()
			exit := filepath.Join(t.TempDir(), "exit")
			if err := os.WriteFile(exit, []byte("137\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			i := processInstance{exitFile: exit, limits: limited{group, c.limit}}
			if r := i.result(); r.code != 137 || r.note != c.want || r.outOf != c.limit {
				t.Errorf("it ended with %d, out of %d MiB: %q", r.code, r.outOf, r.note)
			}
		})
	}
}
