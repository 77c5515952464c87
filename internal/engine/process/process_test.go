package process_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/trainyard/terraform-provider-trainyard/internal/acctest"
	"github.com/trainyard/terraform-provider-trainyard/internal/agent/proctree"
	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/enginetest"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/process"
)

func TestMain(m *testing.M) { acctest.Main(m) }

// opened is an engine and where it keeps its cluster.
type opened struct {
	*process.Engine
	dir string
}

func open(t *testing.T) opened {
	t.Helper()
	return openIn(t, t.TempDir())
}

func openIn(t *testing.T, dir string) opened {
	t.Helper()
	e, err := process.Open("lab", engine.Settings{StateDir: dir}, process.Program{File: acctest.Build(t, acctest.Provider), Version: "dev"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { acctest.EndCluster(t, e) })
	return opened{e, dir}
}

func TestStateDirectory(t *testing.T) {
	t.Setenv("TRAINYARD_STATE_DIR", "/srv/environment")
	for _, c := range []struct{ setting, want, refused string }{
		{"/srv/configured", "/srv/configured", ""},
		{"", "/srv/environment", ""},
		{"state", "", `"state" is a relative path`},
	} {
		e, err := process.Open("lab", engine.Settings{StateDir: c.setting}, process.Program{})
		if c.refused != "" {
			if err == nil || !strings.Contains(err.Error(), c.refused) {
				t.Errorf("state directory %q: %v", c.setting, err)
			}
			continue
		}
		if err != nil {
			t.Errorf("state directory %q: %v", c.setting, err)
		} else if dir := e.Traits().FilesDir("m"); !strings.HasPrefix(dir, c.want+"/lab/") {
			t.Errorf("state directory %q: files are in %s", c.setting, dir)
		}
	}
}

func TestConformance(t *testing.T) {
	enginetest.Run(t, harness(t))
}

// stateDir returns where an engine that open returned keeps its cluster.
func stateDir(t *testing.T, e engine.Engine) string {
	t.Helper()
	o, ok := e.(opened)
	if !ok {
		t.Fatalf("%T is not of these tests", e)
	}
	return o.dir
}

func harness(t *testing.T) enginetest.Harness {
	t.Helper()
	member := acctest.Build(t, acctest.Member)
	return enginetest.Harness{
		Open:    func(t *testing.T, _ string) engine.Engine { t.Helper(); return open(t) },
		Cluster: func(name string) domain.Cluster { return domain.Cluster{Name: name, Engine: process.Name} },
		Host:    "local",
		Template: func(steps ...string) domain.Template {
			return domain.Template{Command: append([]string{member}, steps...)}
		},
		Scratch: func(t *testing.T) string { return filepath.Join(t.TempDir(), "once") },
		Foreign: func(t *testing.T, e engine.Engine) func() error {
			note := filepath.Join(stateDir(t, e), "lab", "work", "job-worker-0", "result.txt")
			if err := os.MkdirAll(filepath.Dir(note), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(note, []byte("result"), 0o600); err != nil {
				t.Fatal(err)
			}
			stranger := exec.CommandContext(t.Context(), member, "wait")
			stranger.Env = []string{"TRAINYARD_MEMBER=job-worker-0"}
			if err := stranger.Start(); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = stranger.Wait() })
			return func() error {
				if _, err := os.Stat(note); err != nil {
					return err
				}
				if _, err := proctree.Lookup(stranger.Process.Pid); err != nil {
					return fmt.Errorf("a process that is no member's: %w", err)
				}
				return nil
			}
		},
		Alive: func(t *testing.T, e engine.Engine, _ string) int {
			t.Helper()
			return acctest.Alive(t, stateDir(t, e), member)
		},
	}
}
