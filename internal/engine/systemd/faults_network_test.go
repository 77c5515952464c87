//go:build linux

package systemd_test

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/crypto/ssh/knownhosts"

	"github.com/trainyard/terraform-provider-trainyard/internal/acctest/testbed"
	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/systemd"
	"github.com/trainyard/terraform-provider-trainyard/internal/reconcile"
)

// waits has an engine apply the group "waiting", with its member on the second host, and wait for its completion. It
// returns once the wait has begun.
func (f faulty) waits(e engine.Engine) (waited <-chan error) {
	f.Helper()
	waiting := f.group("waiting", []int{1}, "until:/var/tmp/go")
	waiting.WaitFor = domain.WaitCompleted
	ended, ctx := make(chan error, 1), f.bounded()
	go func() { ended <- reconcile.Reconciler{Engine: e}.Update(ctx, waiting) }()
	f.eventually("the wait", func() bool {
		doc, err := engine.Get[domain.GroupDocument](f.bounded(), f.Engine, "waiting")
		return err == nil && !doc.Applying
	})
	return ended
}

// TestNetworkCut: a host with members that is unreachable for longer than a lease ends neither its members, nor a wait
// for them, nor an apply of others.
func TestNetworkCut(t *testing.T) {
	f := newFaulty(t)
	g := f.group("job", everyHost, "wait")
	f.update(g)
	waited := f.waits(f.open(0, f.provider))

	f.suffers(1, networkCut)
	cut := time.Now()
	f.eventually("the cut to be noticed",
		func() bool { return f.observed(f.Engine, "job")["job-on2-0"].HostTrouble != "" })
	f.update(f.group("during", []int{0, 2}, "wait"))
	err := reconcile.Reconciler{Engine: f.Engine}.Update(f.bounded(), f.group("there", []int{1}, "wait"))
	if err == nil || !strings.Contains(err.Error(), "host2 can't be reached") {
		t.Errorf("an apply that needs the host: %v", err)
	}
	document, err := engine.Get[domain.GroupDocument](f.bounded(), f.Engine, "job")
	f.must(err)
	f.eventually("a write without the host", func() bool {
		document, err = engine.Put(f.bounded(), f.Engine, document)
		f.must(err)
		return time.Since(cut) > 35*time.Second // longer than a lease
	})
	f.must(f.host(1).Heal())
	f.eventually("the host to be back",
		func() bool { return f.observed(f.Engine, "job")["job-on2-0"].HostTrouble == "" })
	f.startedOnce(g)
	f.sh(1, "touch /var/tmp/go")
	f.must(<-waited)
	f.update(g)
	f.startedOnce(g)
	f.finish()
}

// TestStoreHostCutOff: while the store host is cut off, stored items can be read, a change fails and says where, and a
// lock's holder learns in time that it is lost. A wait that knows no other host continues, and asks it again later.
func TestStoreHostCutOff(t *testing.T) {
	f := newFaulty(t)
	g := f.group("job", everyHost, "wait")
	f.update(g)
	waited := f.waits(f.openThrough(stalling(t, f.host(0))))
	held, release, err := f.open(0, f.provider).Hold(t.Context(), "mine",
		engine.Holder{Who: "the test", Process: os.Getpid()})
	f.must(err)
	second := f.group("second", everyHost, "wait")
	cutting := dying(f.open(0, f.provider), "Start", func() {
		f.copied()
		f.suffers(0, networkCut)
	})
	err = reconcile.Reconciler{Engine: cutting}.Update(f.bounded(), second)
	t.Logf("the apply: %v", err)
	if err == nil || !strings.Contains(err.Error(), "host1") {
		t.Errorf("an apply whose store host is cut off: %v", err)
	}
	<-held.Done()
	if context.Cause(held) == nil || !strings.Contains(context.Cause(held).Error(), `lock "mine" was lost`) {
		t.Errorf("the lock's end says: %v", context.Cause(held))
	}
	f.readable(f.open(1, f.provider), "host1", 3)
	f.sh(1, "touch /var/tmp/go")
	f.must(f.host(0).Heal())
	f.must(<-waited)
	f.eventually("the lock to be free", func() bool {
		free, err := f.open(0, f.provider).Lock(f.bounded(), "mine",
			engine.Holder{Who: "another", Process: os.Getpid()})
		if err == nil {
			f.must(free())
		}
		return err == nil
	})
	t.Logf("the release: %v", release())
	f.update(second)
	f.startedOnce(g)
	f.startedOnce(second)
	f.finish()
}

// stalled is a path to a host's SSH server that can be made to stop forwarding.
type stalled struct {
	address string
	mu      sync.RWMutex // held by whoever stalls it
}

// stalling opens a path to a host.
func stalling(t *testing.T, to *testbed.Host) *stalled {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	s := &stalled{address: listener.Addr().String()}
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			ours, err := listener.Accept()
			if err != nil {
				return // the test is over
			}
			theirs, err := net.Dial("tcp", to.SSH)
			if err != nil {
				_ = ours.Close()
				continue
			}
			go s.carry(ours, theirs)
			go s.carry(theirs, ours)
		}
	}()
	return s
}

// carry copies from one connection to another while it is allowed to.
func (s *stalled) carry(from, to net.Conn) {
	defer to.Close()
	buffer := make([]byte, 32<<10)
	for {
		n, err := from.Read(buffer)
		s.mu.RLock()
		_, errWrite := to.Write(buffer[:n])
		s.mu.RUnlock()
		if err := errors.Join(err, errWrite); err != nil {
			return
		}
	}
}

// openThrough opens the cluster through a path to its store host.
func (f faulty) openThrough(s *stalled) *systemd.Engine {
	f.Helper()
	file, err := os.Open(f.bed.KnownHosts)
	f.must(err)
	defer file.Close()
	known, err := io.ReadAll(file)
	f.must(err)
	var lines strings.Builder
	for line := range strings.Lines(string(known)) {
		lines.WriteString(strings.ReplaceAll(line, knownhosts.Normalize(f.host(0).SSH),
			knownhosts.Normalize(s.address)))
	}
	own := filepath.Join(f.TempDir(), "known_hosts")
	f.must(os.WriteFile(own, []byte(lines.String()), 0o600))
	ref := f.spec.Ref()
	ref.Endpoint = "ssh://ops@" + s.address
	e, err := systemd.Open(ref, engine.Settings{SSH: engine.SSHCredentials{
		IdentityFiles: []string{f.bed.KeyFile}, KnownHosts: []string{own},
	}}, systemd.Program{File: f.provider})
	f.must(err)
	return e
}

// TestLockGivenUp: a lock reported as lost to its holder is free to take, though the holder's network is back before
// anybody took it.
func TestLockGivenUp(t *testing.T) {
	f := newHostsOf(t, 1)
	f.form(f.spec)
	way := stalling(t, f.host(0))
	held, release, err := f.openThrough(way).Hold(t.Context(), "mine",
		engine.Holder{Who: "the first", Process: os.Getpid()})
	f.must(err)
	way.mu.Lock()
	<-held.Done()
	way.mu.Unlock()
	f.eventually("another to have the lock", func() bool {
		_, err := f.Lock(f.bounded(), "mine", engine.Holder{Who: "another", Process: os.Getpid()})
		if _, locked := errors.AsType[*engine.LockedError](err); err != nil && !locked {
			t.Error(err)
		}
		return err == nil
	})
	if err := release(); !errors.Is(err, engine.ErrLockLost) {
		t.Errorf("the release of a lock that was lost: %v", err)
	}
}

// TestLockOfWhoIsCutOff: a lock's holder that has lost its network learns that the lock is lost before anybody else has
// it.
func TestLockOfWhoIsCutOff(t *testing.T) {
	f := newHostsOf(t, 1)
	f.form(f.spec)
	way := stalling(t, f.host(0))
	held, _, err := f.openThrough(way).Hold(t.Context(), "mine", engine.Holder{Who: "the first", Process: os.Getpid()})
	f.must(err)
	lost := make(chan time.Time, 1)
	go func() {
		<-held.Done()
		lost <- time.Now()
	}()
	way.mu.Lock()
	defer way.mu.Unlock()
	stalled := time.Now()
	f.eventually("another to have the lock", func() bool {
		_, err := f.Lock(f.bounded(), "mine", engine.Holder{Who: "another", Process: os.Getpid()})
		if _, locked := errors.AsType[*engine.LockedError](err); err != nil && !locked {
			t.Error(err)
		}
		return err == nil
	})
	taken := time.Now()
	select {
	case at := <-lost:
		t.Logf("it was lost after %s, and another's after %s", at.Sub(stalled).Round(time.Second),
			taken.Sub(stalled).Round(time.Second))
	default:
		t.Error("another has the lock, and its holder doesn't know")
	}
}
