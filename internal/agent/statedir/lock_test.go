//go:build linux

package statedir

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
)

var ada = engine.Holder{
	Who: "ada@engine", Process: os.Getpid(), Operation: "apply of group mnist", Since: time.Unix(1_700_000_000, 0).UTC(),
}

func TestLock(t *testing.T) {
	d := create(t)
	if holder, held, err := d.Holder("group mnist"); held || err != nil {
		t.Errorf("a lock that nobody took is held by %+v (%v)", holder, err)
	}
	lock, err := d.Lock("group mnist", ada)
	must(t, err)
	_, err = d.Lock("group mnist", engine.Holder{Who: "bob"})
	var locked *engine.LockedError
	if !errors.As(err, &locked) {
		t.Fatalf("a lock that is held: %v, not a LockedError", err)
	}
	if diff := cmp.Diff(&engine.LockedError{Lock: "group mnist", Holder: ada}, locked); diff != "" {
		t.Errorf("error (-want +got):\n%s", diff)
	}
	if holder, held, err := d.Holder("group mnist"); !held || err != nil || !cmp.Equal(ada, holder) {
		t.Errorf("the holder is %+v (%v, %v)", holder, held, err)
	}
	other, err := d.Lock("group other", engine.Holder{Who: "bob"})
	must(t, err)
	must(t, other.Release())

	must(t, lock.Release())
	if holder, held, err := d.Holder("group mnist"); held || err != nil {
		t.Errorf("a lock that was given back is held by %+v (%v)", holder, err)
	}
	again, err := d.Lock("group mnist", engine.Holder{Who: "bob"})
	must(t, err)
	must(t, again.Release())
}

// TestLockAfterADeath: whoever finds a lock held whose note is by a process that has died is told to ask again, as the
// present holder is about to write its own.
func TestLockAfterADeath(t *testing.T) {
	d := create(t)
	dead := exec.CommandContext(t.Context(), "true")
	must(t, dead.Run())
	lock, err := d.Lock("group mnist", engine.Holder{Who: "ada", Process: dead.Process.Pid})
	must(t, err)
	_, err = d.Lock("group mnist", engine.Holder{Who: "bob"})
	if locked, is := errors.AsType[*engine.LockedError](err); !is || !locked.Unsure {
		t.Errorf("a lock with the note of the dead: %v", err)
	}
	must(t, lock.Release())
}

// TestHolderTakesNoLock: reading the holder keeps nobody from taking the lock afterwards.
func TestHolderTakesNoLock(t *testing.T) {
	d := create(t)
	for range 3 {
		_, _, err := d.Holder("group mnist")
		must(t, err)
	}
	lock, err := d.Lock("group mnist", ada)
	must(t, err)
	must(t, lock.Release())
}

func TestNote(t *testing.T) {
	d := create(t)
	lock, err := d.Lock(SupervisorLock, ada)
	must(t, err)
	short := engine.Holder{Who: "x"}
	must(t, lock.Note(short))
	if holder, _, err := d.Holder(SupervisorLock); err != nil || !cmp.Equal(short, holder) {
		t.Errorf("after another note the holder is %+v (%v)", holder, err)
	}
	// A holder that has not written its note yet, or died while writing it.
	for _, content := range []string{"", `{"who":"a`} {
		must(t, os.WriteFile(lock.file.Name(), []byte(content), 0o600))
		if holder, held, err := d.Holder(SupervisorLock); !held || err != nil || holder.Who == "" ||
			holder.Process != 0 {
			t.Errorf("with the note %q the holder is %+v (%v, %v)", content, holder, held, err)
		}
		if _, err := d.Lock(SupervisorLock, ada); err == nil || err.Error() != "supervisor is locked by someone" {
			t.Errorf("with the note %q: %v", content, err)
		}
	}
	must(t, lock.Release())
}

func TestLocksOfNoCluster(t *testing.T) {
	d := Dir{Root: t.TempDir(), Cluster: "lab"}
	if _, err := d.Lock("group mnist", ada); !errors.Is(err, engine.ErrNotFound) {
		t.Errorf("a lock of no cluster: %v, not ErrNotFound", err)
	}
	if err := d.AwaitRelease(t.Context(), SupervisorLock); !errors.Is(err, engine.ErrNotFound) {
		t.Errorf("waiting for a lock of no cluster: %v, not ErrNotFound", err)
	}
	if _, held, err := d.Holder(SupervisorLock); held || err != nil {
		t.Errorf("a lock of no cluster is held: %v (%v)", held, err)
	}
	if names := filesIn(t, d.Root); len(names) > 0 {
		t.Errorf("looking for a lock made %v", names)
	}
}

func TestAwaitRelease(t *testing.T) {
	d := create(t)
	must(t, d.AwaitRelease(t.Context(), SupervisorLock))
	lock, err := d.Lock(SupervisorLock, ada)
	must(t, err)
	released := make(chan error, 1)
	go func() { released <- d.AwaitRelease(t.Context(), SupervisorLock) }()
	awaitWaiter(t, lock.file, released)
	must(t, lock.Release())
	must(t, <-released)
}

// awaitWaiter returns when somebody waits for the lock on a file.
func awaitWaiter(t *testing.T, file *os.File, returned <-chan error) {
	t.Helper()
	var stat unix.Stat_t
	must(t, unix.Fstat(int(file.Fd()), &stat))
	inode := fmt.Appendf(nil, ":%d ", stat.Ino)
	look := time.NewTicker(time.Millisecond)
	defer look.Stop()
	for {
		locks, err := os.ReadFile("/proc/locks")
		must(t, err)
		for line := range bytes.Lines(locks) {
			if bytes.Contains(line, []byte("-> FLOCK")) && bytes.Contains(line, inode) {
				return
			}
		}
		select {
		case err := <-returned:
			t.Fatalf("it was not waited for the release: %v", err)
		case <-look.C:
		}
	}
}

// holderVariable is set to the root of the state directory in the process that [TestLockEndsWithItsHolder] kills.
const holderVariable = "STATEDIR_TEST_HOLDER"

// TestLockEndsWithItsHolder runs itself in another process, which takes a lock and is killed.
func TestLockEndsWithItsHolder(t *testing.T) {
	if root := os.Getenv(holderVariable); root != "" {
		lock, err := Dir{Root: root, Cluster: "lab"}.Lock(SupervisorLock, ada)
		must(t, err)
		fmt.Println("held")
		<-t.Context().Done()
		must(t, lock.Release())
		return
	}
	d := create(t)
	holder := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestLockEndsWithItsHolder$")
	holder.Env = append(os.Environ(), holderVariable+"="+d.Root)
	out, err := holder.StdoutPipe()
	must(t, err)
	must(t, holder.Start())
	if _, err := io.ReadFull(out, make([]byte, len("held"))); err != nil {
		t.Fatalf("the other process took no lock: %v", err)
	}
	if _, err := d.Lock(SupervisorLock, ada); err == nil {
		t.Error("a lock that another process holds could be taken")
	}
	must(t, holder.Process.Kill())
	must(t, d.AwaitRelease(t.Context(), SupervisorLock))
	again, err := d.Lock(SupervisorLock, ada)
	must(t, err)
	must(t, again.Release())
	_ = holder.Wait() // it was killed
}
