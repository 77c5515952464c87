//go:build linux

package limits

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/procfs"
)

// mounted returns the entry of a mount as the kernel lists it.
func mounted(fsType, point, root string, options ...string) *procfs.MountInfo {
	m := &procfs.MountInfo{FSType: fsType, MountPoint: point, Root: root, SuperOptions: map[string]string{"rw": ""}}
	for _, option := range options {
		m.SuperOptions[option] = ""
	}
	return m
}

func TestHierarchiesIn(t *testing.T) {
	for name, test := range map[string]struct {
		mounts []*procfs.MountInfo
		own    []procfs.Cgroup
		want   []hierarchy
	}{
		"version 2, a user's session": {
			mounts: []*procfs.MountInfo{mounted("proc", "/proc", "/"), mounted("cgroup2", "/sys/fs/cgroup", "/")},
			own:    []procfs.Cgroup{{Path: "/user.slice/user-1000.slice/session-3.scope"}},
			want: []hierarchy{{
				unified: true, mount: "/sys/fs/cgroup", controllers: []string{"cpu", "memory"},
				own: "user.slice/user-1000.slice/session-3.scope",
			}},
		},
		"version 1, each controller alone, version 2 beside it without controllers": {
			mounts: []*procfs.MountInfo{
				mounted("cgroup2", "/sys/fs/cgroup/unified", "/"),
				mounted("cgroup", "/sys/fs/cgroup/cpu", "/", "cpu"),
				mounted("cgroup", "/sys/fs/cgroup/memory", "/", "memory"),
			},
			own: []procfs.Cgroup{
				{HierarchyID: 4, Controllers: []string{"memory"}, Path: "/service"},
				{HierarchyID: 1, Controllers: []string{"cpu"}, Path: "/"},
				{HierarchyID: 0, Path: "/elsewhere"},
			},
			want: []hierarchy{
				{mount: "/sys/fs/cgroup/cpu", controllers: []string{"cpu"}, own: "."},
				{mount: "/sys/fs/cgroup/memory", controllers: []string{"memory"}, own: "service"},
			},
		},
		"version 1, controllers mounted together, in a container that shows its own group as the root": {
			mounts: []*procfs.MountInfo{
				mounted("cgroup", "/sys/fs/cgroup/cpu,cpuacct", "/docker/4f1c", "cpu", "cpuacct"),
				mounted("cgroup", "/sys/fs/cgroup/memory", "/docker/4f1c", "memory"),
			},
			own: []procfs.Cgroup{
				{HierarchyID: 3, Controllers: []string{"cpu", "cpuacct"}, Path: "/docker/4f1c/inner"},
				{HierarchyID: 4, Controllers: []string{"memory"}, Path: "/docker/4f1c"},
			},
			want: []hierarchy{
				{mount: "/sys/fs/cgroup/cpu,cpuacct", controllers: []string{"cpu"}, own: "inner"},
				{mount: "/sys/fs/cgroup/memory", controllers: []string{"memory"}, own: "."},
			},
		},
		"cpu and memory in one hierarchy of version 1": {
			mounts: []*procfs.MountInfo{mounted("cgroup", "/cgroup", "/", "cpu", "memory")},
			own:    []procfs.Cgroup{{HierarchyID: 1, Controllers: []string{"cpu", "memory"}, Path: "/a"}},
			want:   []hierarchy{{mount: "/cgroup", controllers: []string{"cpu", "memory"}, own: "a"}},
		},
		"one controller in each version": {
			mounts: []*procfs.MountInfo{
				mounted("cgroup", "/sys/fs/cgroup/cpu", "/", "cpu"), mounted("cgroup2", "/sys/fs/cgroup/unified", "/"),
			},
			own: []procfs.Cgroup{{HierarchyID: 1, Controllers: []string{"cpu"}, Path: "/a"}, {Path: "/b"}},
			want: []hierarchy{
				{mount: "/sys/fs/cgroup/cpu", controllers: []string{"cpu"}, own: "a"},
				{unified: true, mount: "/sys/fs/cgroup/unified", controllers: []string{"memory"}, own: "b"},
			},
		},
		"a namespace in which the own group lies outside": {
			mounts: []*procfs.MountInfo{mounted("cgroup2", "/sys/fs/cgroup", "/")},
			own:    []procfs.Cgroup{{Path: "/../other"}},
			want: []hierarchy{
				{unified: true, mount: "/sys/fs/cgroup", controllers: []string{"cpu", "memory"}, own: "."},
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := hierarchiesIn(test.mounts, test.own)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, got, cmp.AllowUnexported(hierarchy{})); diff != "" {
				t.Errorf("hierarchies (-want +got):\n%s", diff)
			}
		})
	}
}

func TestHierarchiesInNothing(t *testing.T) {
	for name, mounts := range map[string][]*procfs.MountInfo{
		"no mount":            {mounted("proc", "/proc", "/")},
		"memory is not there": {mounted("cgroup", "/sys/fs/cgroup/cpu", "/", "cpu")},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := hierarchiesIn(mounts, nil); !errors.Is(err, errNotMounted) {
				t.Errorf("%v, want errNotMounted", err)
			}
		})
	}
}

func TestAncestry(t *testing.T) {
	h := hierarchy{mount: "/sys/fs/cgroup", own: "user.slice/user-1000.slice/session-3.scope"}
	want := []string{
		"/sys/fs/cgroup", "/sys/fs/cgroup/user.slice", "/sys/fs/cgroup/user.slice/user-1000.slice",
		"/sys/fs/cgroup/user.slice/user-1000.slice/session-3.scope",
	}
	if diff := cmp.Diff(want, h.ancestry()); diff != "" {
		t.Errorf("ancestry (-want +got):\n%s", diff)
	}
	h.own = "."
	if diff := cmp.Diff(want[:1], h.ancestry()); diff != "" {
		t.Errorf("ancestry of the root (-want +got):\n%s", diff)
	}
}

// TestEnable uses plain files; the tests with real groups cover the kernel's side.
func TestEnable(t *testing.T) {
	for name, test := range map[string]struct {
		offered, enabled string
		written, problem string
	}{
		"nothing enabled": {offered: "cpuset cpu io memory pids", written: "+cpu +memory"},
		"one enabled":     {offered: "cpu memory pids", enabled: "memory pids", written: "+cpu"},
		"all enabled":     {offered: "cpu memory", enabled: "cpu memory", written: "cpu memory"},
		"one not delegated": {
			offered: "memory pids", enabled: "memory pids", written: "memory pids",
			problem: "does not have the cpu controller (only memory, pids)",
		},
		"controllers elsewhere ": {offered: "hugetlb", problem: "does not have the cpu controller (only hugetlb)"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			for file, content := range map[string]string{
				"cgroup.controllers": test.offered, "cgroup.subtree_control": test.enabled,
			} {
				if err := os.WriteFile(filepath.Join(dir, file), []byte(content), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			h := hierarchy{unified: true, controllers: []string{cpu, memory}}
			err := h.enable(dir)
			if test.problem == "" && err != nil ||
				test.problem != "" && (err == nil || !strings.Contains(err.Error(), test.problem)) {
				t.Errorf("error %v, want %q", err, test.problem)
			}
			written, err := os.ReadFile(filepath.Join(dir, "cgroup.subtree_control"))
			if err != nil {
				t.Fatal(err)
			}
			// Writing to a plain file overwrites only as much as is written.
			if !strings.HasPrefix(string(written), test.written) {
				t.Errorf("subtree_control is %q, want %q", written, test.written)
			}
		})
	}
}
