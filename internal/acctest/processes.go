//go:build linux

package acctest

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/prometheus/procfs"
)

// Alive returns how many processes of a program run for the members whose files are in a state directory.
func Alive(t testing.TB, stateDir, program string) int {
	t.Helper()
	processes, err := procfs.AllProcs()
	if err != nil {
		t.Fatal(err)
	}
	count := 0
	for _, p := range processes {
		executable, err := p.Executable()
		if err != nil || executable != program {
			continue
		}
		stat, err := p.Stat()
		if err != nil || stat.State == "Z" {
			continue
		}
		if below(p, stateDir) {
			count++
		}
	}
	return count
}

// below reports whether a process runs in a folder of the state directory.
func below(p procfs.Proc, stateDir string) bool {
	dir, err := p.Cwd()
	return err == nil && len(dir) > len(stateDir) && dir[:len(stateDir)] == stateDir
}

// Processes describes all processes related to a state directory by PID, except the test's own: members and their
// shells, supervisors, controllers and providers.
func Processes(t testing.TB, stateDir string) map[int]string {
	t.Helper()
	all, err := procfs.AllProcs()
	if err != nil {
		t.Fatal(err)
	}
	found := map[int]string{}
	for _, p := range all {
		if p.PID == os.Getpid() {
			continue
		}
		// What can't be read belongs to somebody else, or has ended.
		line, _ := p.CmdLine()
		environ, _ := p.Environ()
		cwd, _ := p.Cwd()
		command := strings.Join(line, " ")
		if strings.Contains(command+cwd+strings.Join(environ, " "), stateDir) {
			found[p.PID] = fmt.Sprintf("%d in %s: %s", p.PID, cwd, command)
		}
	}
	return found
}

// ExpectNobody fails unless all processes related to a state directory end without leaving files in it. If the test has
// already failed, it kills them.
func ExpectNobody(t testing.TB, stateDir, when string) {
	t.Helper()
	failed := t.Failed()
	var left map[int]string
	defer func() {
		for _, process := range left {
			t.Logf("there is still %s", process)
		}
	}()
	Eventually(t, "the last process to end "+when, func() bool {
		left = Processes(t, stateDir)
		if failed {
			for pid := range left {
				_ = syscall.Kill(pid, syscall.SIGKILL)
			}
		}
		return len(left) == 0
	})
	if failed {
		return
	}
	err := filepath.WalkDir(stateDir, func(path string, entry os.DirEntry, err error) error {
		if err == nil && !entry.IsDir() {
			t.Errorf("%s, %s is left", when, path)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}
