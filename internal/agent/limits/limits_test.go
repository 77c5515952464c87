//go:build linux

package limits

import (
	"bufio"
	"crypto/rand"
	"errors"
	"io/fs"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/trainyard/terraform-provider-trainyard/internal/acctest"
	"github.com/trainyard/terraform-provider-trainyard/internal/acctest/patience"
)

// join makes a shell join the group whose files are its arguments.
const join = `for file in "$@"; do echo $$ > "$file" || exit 9; done; `

// need skips a test, with the reason, if limits can't be enforced. As root in CI it fails the test instead, unless
// there are no cgroups at all.
func need(t *testing.T) {
	t.Helper()
	err := probe()
	switch {
	case err == nil:
	case os.Geteuid() == 0 && os.Getenv("CI") != "" && !errors.Is(err, errNotMounted):
		t.Fatalf("root can't enforce limits: %v", err)
	default:
		t.Skipf("limits can't be enforced here: %v", err)
	}
}

func create(t *testing.T, cpus float64, memoryMiB int64) *Group {
	t.Helper()
	g, err := Create("test-"+rand.Text(), cpus, memoryMiB)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := g.delete(patience.Limit); err != nil {
			t.Error(err)
		}
	})
	return g
}

// shell returns a command that runs a script in the group.
func shell(t *testing.T, g *Group, script string) *exec.Cmd {
	t.Helper()
	return exec.CommandContext(t.Context(), "/bin/sh", append([]string{"-c", join + script, "sh"}, g.JoinFiles()...)...)
}

// file returns a group's file under its version 1 or version 2 name, whichever exists.
func file(t *testing.T, g *Group, version1, version2 string) string {
	t.Helper()
	for _, dir := range g.dirs {
		name := version1
		if dir.unified {
			name = version2
		}
		if path := filepath.Join(dir.path, name); exists(path) {
			return path
		}
	}
	t.Fatalf("the group has neither %s nor %s", version1, version2)
	return ""
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

func read(t *testing.T, path string) string {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(content))
}

func TestAvailable(t *testing.T) {
	need(t)
	if ok, reason := Available(); !ok || reason != "" {
		t.Errorf("%v, %q", ok, reason)
	}
	hierarchies, err := findHierarchies()
	if err != nil {
		t.Fatal(err)
	}
	for _, h := range hierarchies {
		parent, err := h.parent()
		if err != nil {
			t.Fatal(err)
		}
		left, err := filepath.Glob(filepath.Join(parent, "probe-*"))
		if err != nil {
			t.Fatal(err)
		}
		// Other processes of this machine probe, too, and each removes its own.
		for _, group := range left {
			acctest.Eventually(t, group+" to go", func() bool { return !exists(group) })
		}
	}
}

func TestMemoryLimitKills(t *testing.T) {
	need(t)
	g := create(t, 0, 32)
	if kills, err := g.OOMKills(); kills != 0 || err != nil {
		t.Fatalf("%d kills in a new group, %v", kills, err)
	}
	// tail keeps the last line in memory, and this one is endless.
	err := shell(t, g, "exec tail /dev/zero").Run()
	var exit *exec.ExitError
	if !errors.As(err, &exit) {
		t.Fatalf("beyond the limit: %v, want to be killed", err)
	}
	if status, ok := exit.Sys().(syscall.WaitStatus); !ok || status.Signal() != unix.SIGKILL {
		t.Errorf("beyond the limit: %v, want to be killed", err)
	}
	if kills, err := g.OOMKills(); kills != 1 || err != nil || !g.Full() {
		t.Errorf("%d kills, %v, want 1; full: %t", kills, err, g.Full())
	}
}

func TestFull(t *testing.T) {
	for name, c := range map[string]struct {
		limit, events string
		want          bool
	}{
		"out of its limit":         {"33554432\n", "max 7\noom 1\noom_kill 1\n", true},
		"within its limit":         {"33554432\n", "max 7\noom 0\noom_kill 1\n", false},
		"a limit of a group above": {"max\n", "max 0\noom 0\noom_kill 1\n", true},
		"an old kernel":            {"33554432\n", "max 7\n", true},
		"version 1":                {"", "", true},
	} {
		folder := t.TempDir()
		for file, content := range map[string]string{"memory.max": c.limit, "memory.events": c.events} {
			if content == "" {
				continue
			}
			if err := os.WriteFile(filepath.Join(folder, file), []byte(content), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if got := Full(folder); got != c.want {
			t.Errorf("%s: full: %t", name, got)
		}
	}
}

func TestMemoryWithinLimit(t *testing.T) {
	need(t)
	g := create(t, 0, 64)
	if out, err := shell(t, g, "head -c 16000000 /dev/zero | tail > /dev/null").CombinedOutput(); err != nil {
		t.Errorf("within the limit: %v, %s", err, out)
	}
	if kills, err := g.OOMKills(); kills != 0 || err != nil {
		t.Errorf("%d kills, %v, want 0", kills, err)
	}
}

func TestCPULimitThrottles(t *testing.T) {
	need(t)
	g := create(t, 0.5, 0)
	// The shell computes until the kernel reports that it was throttled.
	stat := file(t, g, "cpu.stat", "cpu.stat")
	busy := `
		while :; do
			while read -r key count; do
				[ "$key" = nr_throttled ] && [ "$count" -gt 0 ] && exit 0
			done < "` + stat + `"
		done`
	if out, err := shell(t, g, busy).CombinedOutput(); err != nil {
		t.Errorf("computing in the group: %v, %s", err, out)
	}
	if throttled, err := readCount(stat, "nr_throttled"); throttled == 0 || err != nil {
		t.Errorf("throttled %d times, %v", throttled, err)
	}
}

func TestCreateSetsLimitsAnew(t *testing.T) {
	need(t)
	g := create(t, 1, 64)
	for _, test := range []struct {
		cpus             float64
		memoryMiB        int64
		version1CPU      string
		version2CPU      string
		version1, memory string
	}{
		{1, 64, "100000", "100000 100000", "67108864", "67108864"},
		{2.5, 128, "250000", "250000 100000", "134217728", "134217728"},
		{0.5, 32, "50000", "50000 100000", "33554432", "33554432"},
		{0, 0, "-1", "max 100000", "", "max"},
	} {
		again, err := Create(g.name, test.cpus, test.memoryMiB)
		if err != nil {
			t.Fatal(err)
		}
		cpu := read(t, file(t, again, "cpu.cfs_quota_us", "cpu.max"))
		if cpu != test.version1CPU && cpu != test.version2CPU {
			t.Errorf("with %v CPUs the kernel holds %q", test.cpus, cpu)
		}
		memory := read(t, file(t, again, "memory.limit_in_bytes", "memory.max"))
		if test.memoryMiB == 0 && memory != "max" {
			// Version 1 shows the maximum number of pages.
			if n, err := strconv.ParseUint(memory, 10, 64); err != nil || n < 1<<60 {
				t.Errorf("without a memory limit the kernel holds %q", memory)
			}
		} else if memory != test.memory {
			t.Errorf("with %d MiB the kernel holds %q", test.memoryMiB, memory)
		}
	}
}

// TestRaise: a CPU limit is replaced, a memory limit only ever raised. 0 leaves a limit unchanged, and so is a memory
// limit that was never set.
func TestRaise(t *testing.T) {
	need(t)
	for name, test := range map[string]struct {
		cpus, toCPUs float64
		mib, toMiB   int64
		want         string
	}{
		"both":                    {1, 2.5, 64, 128, "250000 134217728"},
		"less":                    {1, 0.5, 64, 32, "50000 67108864"},
		"neither":                 {1, 0, 64, 0, "100000 67108864"},
		"memory without a limit":  {1, 2, 0, 128, "200000 none"},
		"processors alone, again": {1, 1, 64, 64, "100000 67108864"},
	} {
		g := create(t, test.cpus, test.mib)
		if err := g.Raise(test.toCPUs, test.toMiB); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		cpus, _, _ := strings.Cut(read(t, file(t, g, "cpu.cfs_quota_us", "cpu.max")), " ")
		memory := read(t, file(t, g, "memory.limit_in_bytes", "memory.max"))
		if n, err := strconv.ParseUint(memory, 10, 64); err != nil || n >= 1<<60 {
			memory = "none"
		}
		if got := cpus + " " + memory; got != test.want {
			t.Errorf("%s: the kernel holds %q, want %q", name, got, test.want)
		}
	}
}

func TestOpen(t *testing.T) {
	need(t)
	g := create(t, 1, 64)
	found, err := Open(g.name)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := strings.Join(found.JoinFiles(), " "), strings.Join(g.JoinFiles(), " "); got != want {
		t.Errorf("the group that was found is joined by %s, want %s", got, want)
	}
	// A deletion that was interrupted after the first hierarchy can be repeated.
	if err := unix.Rmdir(g.dirs[0].path); err != nil {
		t.Fatal(err)
	}
	if len(g.dirs) > 1 {
		if found, err = Open(g.name); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 {
		if err := found.Delete(); err != nil {
			t.Errorf("deletion: %v", err)
		}
	}
	if _, err := Open(g.name); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a deleted group: %v, want ErrNotExist", err)
	}
	if kills, err := g.OOMKills(); err == nil {
		t.Errorf("%d kills were read from a deleted group", kills)
	}
}

func TestDelete(t *testing.T) {
	need(t)
	g := create(t, 0, 0)
	cmd := shell(t, g, "echo joined; read never")
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(stdout).ReadString('\n'); err != nil {
		t.Fatalf("%q, %v", line, err)
	}
	pid := strconv.Itoa(cmd.Process.Pid)
	if err := g.delete(0); err == nil || !strings.Contains(err.Error(), "still contains processes "+pid) {
		t.Errorf("deleting a group that holds process %s: %v", pid, err)
	}
	// The deletion starts while the process is there, and finishes after its end.
	deleted := make(chan error)
	go func() { deleted <- g.delete(patience.Limit) }()
	_ = stdin.Close()
	if err := <-deleted; err != nil {
		t.Errorf("deleting a group whose process ends: %v", err)
	}
	_ = cmd.Wait()
	for _, dir := range g.dirs {
		if exists(dir.path) {
			t.Errorf("%s is left", dir.path)
		}
	}
}

func TestDeleteRemovesGroupsWithin(t *testing.T) {
	need(t)
	g := create(t, 0, 0)
	if err := os.Mkdir(filepath.Join(g.dirs[0].path, "within"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := g.Delete(); err != nil || exists(g.dirs[0].path) {
		t.Errorf("a group with one in it: %v, there: %v", err, exists(g.dirs[0].path))
	}
}

func TestBadInput(t *testing.T) {
	for name, test := range map[string]struct {
		name      string
		cpus      float64
		memoryMiB int64
		want      string
	}{
		"empty name":       {want: `name ""`},
		"path":             {name: "../x", want: `name "../x"`},
		"file of a group":  {name: "cpu.max", want: `name "cpu.max"`},
		"long name":        {name: strings.Repeat("x", 129), want: "use 1 to 128 letters"},
		"negative CPUs":    {name: "x", cpus: -1, want: "-1 CPUs can't be enforced: use 0.01 to 100000"},
		"too little CPU":   {name: "x", cpus: 0.001, want: "0.001 CPUs can't be enforced"},
		"too many CPUs":    {name: "x", cpus: 1e9, want: "use 0.01 to 100000"},
		"not a number":     {name: "x", cpus: math.NaN(), want: "NaN CPUs can't be enforced"},
		"negative memory":  {name: "x", memoryMiB: -5, want: "-5 MiB of memory can't be enforced"},
		"memory overflows": {name: "x", memoryMiB: 1 << 44, want: "use 1 to 8796093022207"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := Create(test.name, test.cpus, test.memoryMiB); err == nil ||
				!strings.Contains(err.Error(), test.want) {
				t.Errorf("%v, want %q", err, test.want)
			}
		})
	}
}
