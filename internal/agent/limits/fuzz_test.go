//go:build linux

package limits

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/prometheus/procfs"
)

// FuzzReadCount shows that readCount returns a cgroup's count, or an error that names the file.
func FuzzReadCount(f *testing.F) {
	for _, content := range []string{
		"low 0\nhigh 0\nmax 3\noom 1\noom_kill 1\n", "oom_kill_disable 0\nunder_oom 0\noom_kill 2\n", "", "oom_kill ",
		"oom_kill x", "oom_kill 1 2", "oom_kill -1",
		"oom_kill 18446744073709551616", strings.Repeat("a", 1<<17) + "\noom_kill 1\n",
	} {
		f.Add([]byte(content))
	}
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, content []byte) {
		file := filepath.Join(dir, "memory.events")
		if err := os.WriteFile(file, content, 0o600); err != nil {
			t.Fatal(err)
		}
		count, err := readCount(file, "oom_kill")
		switch {
		case err != nil && !strings.Contains(err.Error(), file):
			t.Errorf("the error does not name the file: %v", err)
		case err == nil && count < 0:
			t.Errorf("the count is %d", count)
		}
	})
}

// FuzzHierarchies shows that groups are only created below the mount point, whatever a process's cgroup is called and
// whatever part of the tree is mounted.
func FuzzHierarchies(f *testing.F) {
	for _, group := range []string{
		"/", "/user.slice", "/../../system.slice", "..", "../x", "", "/a/../../b", "//a//b/", "/a\x00b", "/docker/4f1c",
	} {
		f.Add("/", group, true)
		f.Add("/docker/4f1c", group, false)
		f.Add("/../..", group, false)
		f.Add("", group, true)
	}
	f.Fuzz(func(t *testing.T, root, group string, unified bool) {
		const point = "/sys/fs/cgroup"
		mount := mounted("cgroup", point, root, cpu, memory)
		if unified {
			mount = mounted("cgroup2", point, root)
		}
		found, err := hierarchiesIn([]*procfs.MountInfo{mount},
			[]procfs.Cgroup{{Controllers: []string{cpu, memory}, Path: group}})
		if err != nil {
			t.Fatal(err)
		}
		for _, h := range found {
			for i, dir := range h.ancestry() {
				if dir != filepath.Clean(dir) || dir != point && !strings.HasPrefix(dir, point+"/") ||
					i == 0 && dir != point {
					t.Errorf("with %q mounted, a process of %q has the groups %q", root, group, h.ancestry())
				}
			}
		}
	})
}
