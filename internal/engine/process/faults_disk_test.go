//go:build linux

package process_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/trainyard/terraform-provider-trainyard/internal/acctest"
	"github.com/trainyard/terraform-provider-trainyard/internal/agent/proctree"
	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
)

func TestFullDisk(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("a small file system of the test's own takes root to mount")
	}
	disk := t.TempDir()
	if err := unix.Mount("tmpfs", disk, "tmpfs", 0, "size=1m"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Unmount(disk, unix.MNT_DETACH) })
	l := newLabIn(t, disk)
	l.must(l.Update(t.Context(), l.job("wait")))
	chief := l.command("job-chief-0")
	before, err := engine.Get[domain.GroupDocument](t.Context(), l, "job")
	l.must(err)

	// Residents that replace a file meanwhile would free the old one's room.
	residents := []int{l.supervisor(0), l.controller(0)}
	for _, pid := range residents {
		l.halt(pid)
	}
	ballast := filepath.Join(disk, "ballast")
	if err := os.WriteFile(ballast, make([]byte, 1<<20), 0o600); !errors.Is(err, unix.ENOSPC) {
		t.Fatalf("the disk is not full: %v", err)
	}
	err = l.Update(acctest.Bounded(t), l.job("print:changed", "wait"))
	if err == nil || !strings.Contains(err.Error(), "no space left on device") || !strings.Contains(err.Error(), disk) {
		t.Errorf("an apply on a full disk: %v", err)
	}
	after, err := engine.Get[domain.GroupDocument](t.Context(), l, "job")
	l.must(err)
	if after.Revision != before.Revision {
		t.Errorf("the document went from revision %d to %d", before.Revision, after.Revision)
	}
	for _, pid := range residents {
		l.must(unix.Kill(pid, unix.SIGCONT))
	}
	// Destroying still works.
	l.must(l.Destroy(t.Context(), "other"))
	l.must(unix.Kill(chief, unix.SIGTERM))
	l.eventually("the chief's end", func() bool {
		_, err := proctree.Lookup(chief)
		return errors.Is(err, proctree.ErrGone)
	})

	l.must(os.Remove(ballast))
	if o := l.awaitState("job-chief-0", domain.StateCompleted); o.ExitCode == nil || *o.ExitCode != 0 {
		t.Errorf("a member that completed on a full disk is %+v", o)
	}
	l.awaitState("job-ps-0", domain.StateStopped)
}

func TestUnwritableStateDirectory(t *testing.T) {
	e := open(t)
	if err := os.WriteFile(filepath.Join(e.dir, "lab"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	spec, _, err := e.Complete(t.Context(), domain.Cluster{Name: "lab", Engine: "process"})
	if err != nil {
		t.Fatal(err)
	}
	_, err = engine.Put(t.Context(), e, domain.ClusterDocument{Spec: spec})
	if err == nil || !strings.Contains(err.Error(), e.dir) {
		t.Errorf("a state directory that can't be made: %v", err)
	}
	if err := os.Remove(filepath.Join(e.dir, "lab")); err != nil {
		t.Fatal(err)
	}
}
