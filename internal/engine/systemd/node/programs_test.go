//go:build linux

package node

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"
)

// TestRemoveUnused: old programs go unless a cluster's link or unit has them; those installed or run lately may be
// about to be started, with their agents.
func TestRemoveUnused(t *testing.T) {
	root := t.TempDir()
	programs, clusters, units := filepath.Join(root, "bin"), filepath.Join(root, "clusters"),
		filepath.Join(root, "units")
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	now := time.Now()
	if err := removeUnused(programs, clusters, units, now); err != nil {
		t.Errorf("on a host without anything: %v", err)
	}
	for name, age := range map[string]time.Duration{
		"of-link": 48 * time.Hour, "of-agent": 48 * time.Hour, "of-unit": 48 * time.Hour,
		"earlier": 48 * time.Hour, "just-installed": time.Minute, "of-relay": 48 * time.Hour,
		"earlier-agent": 48 * time.Hour, "of-relay-agent": 48 * time.Hour,
	} {
		folder := filepath.Join(programs, name)
		must(os.MkdirAll(folder, 0o755))
		must(os.WriteFile(filepath.Join(folder, "trainyard"), nil, 0o755))
		if name == "of-relay" || name == "earlier" {
			must(recordAgent(programs, filepath.Join(folder, "trainyard"), filepath.Join(folder+"-agent", "agent")))
		}
		must(os.Chtimes(folder, now.Add(-age), now.Add(-age)))
	}
	for name, age := range map[string]time.Duration{
		".upload.broke-off": 2 * time.Hour, ".upload.goes-on": time.Minute,
	} {
		must(os.WriteFile(filepath.Join(programs, name), nil, 0o600))
		must(os.Chtimes(filepath.Join(programs, name), now.Add(-age), now.Add(-age)))
	}
	must(os.MkdirAll(filepath.Join(clusters, "lab"), 0o755))
	must(os.Symlink(filepath.Join(programs, "of-link", "trainyard"), filepath.Join(clusters, "lab", programLink)))
	must(os.Symlink(filepath.Join(programs, "of-agent", "trainyard"), filepath.Join(clusters, "lab", agentLink)))
	must(os.MkdirAll(units, 0o755))
	must(os.WriteFile(filepath.Join(units, "trainyard@other.service"),
		[]byte("[Service]\nExecStart="+programs+"/of-unit/trainyard supervise --cluster other\n"), 0o600))

	must(markUsed(programs, filepath.Join(programs, "of-relay", "trainyard"), now))
	must(markUsed(programs, filepath.Join(root, "elsewhere", "terraform-provider-trainyard"), now))

	must(removeUnused(programs, clusters, units, now))
	entries, err := os.ReadDir(programs)
	must(err)
	var left []string
	for _, entry := range entries {
		left = append(left, entry.Name())
	}
	want := []string{
		".upload.goes-on", "just-installed", "of-agent", "of-link", "of-relay", "of-relay-agent", "of-unit",
	}
	if !slices.Equal(left, want) {
		t.Errorf("there are %q, want %q", left, want)
	}
}
