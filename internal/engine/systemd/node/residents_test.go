//go:build linux

package node

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/trainyard/terraform-provider-trainyard/internal/engine/systemd/layout"
)

// systemctlScript is a systemctl that fails once with one command, leaves a file for each that succeeds, and wants a
// reload until then.
const systemctlScript = `#!/bin/sh
cd %q
case $1 in
show) [ -e daemon-reload ] || echo yes ;;
%s) [ -e failed ] && touch "$1" || ! touch failed ;;
*) touch "$1" ;;
esac
`

// TestWriteUnitAgain: what failed after a supervisor's unit was written is done by the next attempt.
func TestWriteUnitAgain(t *testing.T) {
	for _, fails := range []string{"daemon-reload", "enable"} {
		t.Run(fails, func(t *testing.T) {
			bin, units := t.TempDir(), t.TempDir()
			script := fmt.Sprintf(systemctlScript, bin, fails)
			if err := os.WriteFile(filepath.Join(bin, "systemctl"), []byte(script), 0o755); err != nil { //nolint:gosec // it is run
				t.Fatal(err)
			}
			t.Setenv("PATH", bin+":"+os.Getenv("PATH"))
			write := func() error {
				return writeUnit(t.Context(), units, "lab", "/var/lib/trainyard/bin/1/trainyard", "1")
			}
			if err := write(); err == nil {
				t.Fatalf("systemctl %s fails, and nobody says so", fails)
			}
			if err := write(); err != nil {
				t.Fatal(err)
			}
			info, err := os.Stat(filepath.Join(units, layout.SupervisorUnit("lab")))
			if err != nil || info.Mode() != 0o644 {
				t.Errorf("the unit is %v, %v, want one that all can read", info, err)
			}
			for _, done := range []string{"daemon-reload", "enable"} {
				if _, err := os.Stat(filepath.Join(bin, done)); err != nil {
					t.Errorf("the unit is in place without systemctl %s", done)
				}
			}
		})
	}
}
