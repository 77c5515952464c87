//go:build linux

package store

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/docker/docker/api/types/swarm"
	"github.com/google/go-cmp/cmp"

	"github.com/trainyard/terraform-provider-trainyard/internal/acctest"
	"github.com/trainyard/terraform-provider-trainyard/internal/acctest/testbed"
	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/swarm/dockerapi"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/swarm/spec"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/swarm/swarmtest"
)

const jobLock = "group job"

var (
	ada = engine.Holder{
		Who: "ada@gpu1", Process: 4711, Operation: "apply of group job", Since: time.Unix(1_700_000_000, 0).UTC(),
	}
	bob = engine.Holder{
		Who: "bob@gpu2", Process: 12, Operation: "destroy of group job", Since: time.Unix(1_700_000_001, 0).UTC(),
	}
)

// brief is the lease of locks that are to be lost. To release a lock has to take no longer than its lease, also on a
// busy machine.
const brief = 10 * time.Second

// onAnotherMachine has an engine take the locks of others for those of another machine, and leases for short.
func onAnotherMachine(e storage, lease time.Duration) {
	e.Leases.Self, e.Leases.lease = Owner{Machine: "another", Process: 1, StartTime: 1}, lease
}

func wantLocked(t *testing.T, err error, holder engine.Holder) {
	t.Helper()
	locked, is := errors.AsType[*engine.LockedError](err)
	if !is || locked.Lock != jobLock || !cmp.Equal(locked.Holder, holder) {
		t.Errorf("a lock that %s holds: %v", holder.Who, err)
	}
}

// version returns the version of the object of the job's lock, 0 if there is none.
func version(t *testing.T, e storage) uint64 {
	t.Helper()
	found, err := e.swarm.Connection.ConfigNamed(t.Context(), spec.LockName(e.swarm.Cluster, jobLock))
	must(t, err)
	if found == nil {
		return 0
	}
	return found.Version.Index
}

// takeover takes the job's lock once the engine gets it, and returns the release.
func takeover(t *testing.T, e storage, from engine.Holder) (release func() error) {
	t.Helper()
	acctest.Eventually(t, "the end of the lease", func() bool {
		var err error
		release, err = e.Lock(t.Context(), jobLock, bob)
		if err != nil {
			wantLocked(t, err, from)
		}
		return err == nil || t.Failed()
	})
	if t.Failed() {
		t.FailNow()
	}
	return release
}

func TestLock(t *testing.T) {
	e, _ := stored(t, "locks")
	other := storageOf(t, "locks")
	release, err := e.Lock(t.Context(), jobLock, ada)
	must(t, err)
	for _, asks := range []engine.Locker{e, other, NewLocks(NewItems(e.swarm), e.Leases)} {
		_, err = asks.Lock(t.Context(), jobLock, bob)
		wantLocked(t, err, ada)
	}
	another, err := other.Lock(t.Context(), "group other", bob)
	must(t, err)
	e.wantObjects(t, "cluster 1", "lock")
	if groups, err := engine.List[domain.GroupDocument](t.Context(), e); err != nil || len(groups) != 0 {
		t.Errorf("with locks the groups are %v (%v)", groups, err)
	}
	must(t, another())
	must(t, release())
	must(t, release())
	e.wantObjects(t, "cluster 1")

	again, err := other.Lock(t.Context(), jobLock, bob)
	must(t, err)
	// A second call of a release does not release the next holder's lock.
	must(t, release())
	_, err = e.Lock(t.Context(), jobLock, ada)
	wantLocked(t, err, bob)
	must(t, again())
}

// TestLockWithoutCluster: a missing cluster has no locks, and a deleted one leaves none behind.
func TestLockWithoutCluster(t *testing.T) {
	e := storageOf(t, "nolocks")
	_, err := e.Lock(t.Context(), jobLock, ada)
	wantNotFound(t, err)
	e.wantObjects(t)

	_, err = engine.Put(t.Context(), e, domain.ClusterDocument{})
	must(t, err)
	release, err := e.Lock(t.Context(), jobLock, ada)
	must(t, err)
	must(t, deleteItems(t.Context(), e))
	if err := release(); !errors.Is(err, engine.ErrLockLost) {
		t.Errorf("the release of a lock whose cluster was deleted: %v", err)
	}
}

// TestLockOfManyTakers: exactly one of several takers gets a lock, also if its holder is dead.
func TestLockOfManyTakers(t *testing.T) {
	e, _ := stored(t, "takers")
	for _, dead := range []bool{false, true} {
		if dead {
			leaveLock(t, e, deadOwner(t), ada)
		}
		var takers sync.WaitGroup
		var mu sync.Mutex
		var releases []func() error
		for range 10 {
			takers.Go(func() {
				release, err := e.Lock(t.Context(), jobLock, bob)
				mu.Lock()
				defer mu.Unlock()
				if err == nil {
					releases = append(releases, release)
				} else {
					wantLocked(t, err, bob)
				}
			})
		}
		takers.Wait()
		if len(releases) != 1 {
			t.Fatalf("%d of 10 got the lock", len(releases))
		}
		must(t, releases[0]())
	}
}

// deadOwner returns a process of this machine that has ended.
func deadOwner(t *testing.T) Owner {
	t.Helper()
	o, child := childOwner(t)
	must(t, child.Process.Kill())
	_ = child.Wait() // it was killed
	return o
}

// leaveLock leaves the job's lock as a dying process would.
func leaveLock(t *testing.T, e storage, by Owner, holder engine.Holder) {
	t.Helper()
	l := lock{
		of: e.Locks, name: jobLock, object: spec.LockName(e.swarm.Cluster, jobLock),
		own: lease{Token: "left", Holder: holder, Owner: by},
	}
	must(t, l.write(t.Context(), nil))
}

// holderVariable is set to the manager's endpoint in the process that [TestLockOfKilledProcess] kills.
const holderVariable = "TRAINYARD_TEST_LOCK_HOLDER"

// TestLockOfKilledProcess runs itself in another process, which takes a lock and is killed: the next taker on the same
// machine gets the lock at once, whatever the lease.
func TestLockOfKilledProcess(t *testing.T) {
	const cluster = "killed"
	if endpoint := os.Getenv(holderVariable); endpoint != "" {
		c, err := dockerapi.New(domain.ClusterRef{Name: cluster, Endpoint: endpoint}, engine.Settings{})
		must(t, err)
		in := dockerapi.Swarm{Cluster: cluster, Connection: c, Reads: dockerapi.Live(c)}
		e := NewLocks(NewItems(in), NewLeases())
		_, err = e.Lock(t.Context(), jobLock, ada)
		must(t, err)
		fmt.Println("held")
		<-t.Context().Done()
		return
	}
	e, _ := stored(t, cluster)
	holder := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestLockOfKilledProcess$")
	holder.Env = append(os.Environ(), holderVariable+"="+e.swarm.Connection.Preferred())
	out, err := holder.StdoutPipe()
	must(t, err)
	must(t, holder.Start())
	line := make([]byte, len("held"))
	if _, err := out.Read(line); err != nil || string(line) != "held" {
		t.Fatalf("the other process took no lock: %q (%v)", line, err)
	}
	_, err = e.Lock(t.Context(), jobLock, bob)
	wantLocked(t, err, ada)
	must(t, holder.Process.Kill())
	_ = holder.Wait() // it was killed
	release, err := e.Lock(t.Context(), jobLock, bob)
	must(t, err)
	must(t, release())
}

// TestLockOutlastsRestart: releasing a lock waits for a manager that does not answer for a moment.
func TestLockOutlastsRestart(t *testing.T) {
	t.Parallel()
	e, proxy := stored(t, "restarting")
	release, err := e.Lock(t.Context(), jobLock, ada)
	must(t, err)
	proxy.On(testbed.Fault{Nth: 1, Onwards: true, Do: testbed.Drop()})
	back := time.AfterFunc(2*time.Second, proxy.Reset)
	defer back.Stop()
	must(t, release())
	again, err := e.Lock(t.Context(), jobLock, bob)
	must(t, err)
	must(t, again())
}

// TestLockReleasedUnheard: a release whose answer is lost counts as successful, even if somebody else takes the lock
// before that is known.
func TestLockReleasedUnheard(t *testing.T) {
	t.Parallel()
	e, proxy := stored(t, "unheard")
	other := storageOf(t, "unheard")
	onAnotherMachine(other, leaseDuration)
	release, err := e.Lock(t.Context(), jobLock, ada)
	must(t, err)
	proxy.On(testbed.Fault{Match: swarmtest.Removal, Nth: 1, Do: testbed.DropAnswer()})
	released := make(chan error)
	go func() { released <- release() }()
	taken := takeover(t, other, ada)
	must(t, <-released)
	_, err = e.Lock(t.Context(), jobLock, ada)
	wantLocked(t, err, bob)
	must(t, taken())
}

// TestLockOfFailedCalls has each call of a lock and of its release fail in turn, before or after it was carried out: a
// lock that could not be taken or released is free after the lease, and none is held twice.
func TestLockOfFailedCalls(t *testing.T) {
	t.Parallel()
	e, proxy := stored(t, "faulty")
	other := storageOf(t, "faulty")
	onAnotherMachine(other, brief)
	e.Leases.lease = brief
	for name, action := range map[string]testbed.Action{"before": testbed.Drop(), "after": testbed.DropAnswer()} {
		for k, survived := 1, false; !survived; k++ {
			proxy.Reset()
			proxy.On(testbed.Fault{Nth: k, Do: action})
			release, err := e.Lock(t.Context(), jobLock, ada)
			if err == nil {
				_, err := other.Lock(t.Context(), jobLock, bob)
				wantLocked(t, err, ada)
				err = release()
				if survived = len(proxy.Calls()) < k; survived {
					must(t, err)
				}
			}
			must(t, takeover(t, other, ada)())
			if survived && k < 7 {
				t.Errorf("only %d calls were failed (%s)", k-1, name)
			}
		}
	}
	proxy.Reset()
	e.wantObjects(t, "cluster 1")
}

// TestLostAnswers: a lock that was taken is held though the manager's answer was lost.
func TestLostAnswers(t *testing.T) {
	e, proxy := stored(t, "answers")
	proxy.On(testbed.Fault{Match: swarmtest.Creation, Nth: 1, Do: testbed.DropAnswer()})
	release, err := e.Lock(t.Context(), jobLock, ada)
	must(t, err)
	_, err = e.Lock(t.Context(), jobLock, bob)
	wantLocked(t, err, ada)
	must(t, release())

	leaveLock(t, e, deadOwner(t), ada)
	proxy.On(testbed.Fault{Match: swarmtest.Update, Nth: 1, Do: testbed.DropAnswer()})
	release, err = e.Lock(t.Context(), jobLock, bob)
	must(t, err)
	must(t, release())
}

// TestUnreadableLock: an unreadable lease counts as somebody's, and expires like any other; an object that is not a
// lock is left alone.
func TestUnreadableLock(t *testing.T) {
	e, _ := stored(t, "unreadable")
	e.Leases.lease = brief
	annotations := swarm.Annotations{
		Name:   spec.LockName("unreadable", jobLock),
		Labels: map[string]string{spec.LabelCluster: "unreadable", spec.LabelKind: kindLock, labelLease: "{"},
	}
	swarmtest.Leave(t, e.swarm.Connection, swarm.ConfigSpec{Annotations: annotations, Data: []byte("?")})
	must(t, takeover(t, e, engine.Holder{Who: "someone"})())

	swarmtest.Leave(t, e.swarm.Connection,
		swarm.ConfigSpec{Annotations: swarm.Annotations{Name: annotations.Name}, Data: []byte("theirs")})
	_, err := e.Lock(t.Context(), jobLock, ada)
	if _, locked := errors.AsType[*engine.LockedError](err); locked ||
		!strings.Contains(fmt.Sprint(err), annotations.Name) {
		t.Errorf("a lock whose name is taken: %v", err)
	}
}
