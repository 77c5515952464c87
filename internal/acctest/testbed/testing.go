//go:build linux

package testbed

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/docker/docker/api/types/swarm"

	"github.com/trainyard/terraform-provider-trainyard/internal/acctest/patience"
)

// SkipIfShort skips a test that needs a bed under -short, as in make test-unit. Whatever starts a bed calls it.
func SkipIfShort(t testing.TB) {
	t.Helper()
	if testing.Short() {
		t.Skip("this starts machines in namespaces, which takes root and time: run make test-swarm")
	}
}

// New starts a bed that ends with the test. If none can be started the test fails; it is skipped only under -short.
func New(t testing.TB, options Options) *Bed {
	t.Helper()
	bed := start(t, options)
	endWith(t, bed.Close)
	bed.logFailure(t)
	return bed
}

// NewHosts is New for hosts.
func NewHosts(t testing.TB, options HostOptions) *Hosts {
	t.Helper()
	bed := startHosts(t, options)
	endWith(t, bed.Close)
	bed.logFailure(t)
	return bed
}

// endWith closes a bed at the end of the test.
func endWith(t testing.TB, closeBed func() error) {
	t.Cleanup(func() {
		if err := closeBed(); err != nil {
			t.Error(err)
		}
	})
}

var (
	sharedMutex sync.Mutex
	shared      = map[Options]*Bed{}
	sharedHosts = map[string]*Hosts{} // by options, formatted
)

// Shared returns the bed with these options that all tests of the process share; the first call starts it. Each test
// leaves it as it found it, and TestMain ends with CloseShared.
func Shared(t testing.TB, options Options) *Bed {
	t.Helper()
	sharedMutex.Lock()
	defer sharedMutex.Unlock()
	bed := shared[options]
	if bed == nil {
		bed = start(t, options)
		shared[options] = bed
	}
	bed.logFailure(t)
	return bed
}

// SharedHosts is Shared for hosts.
func SharedHosts(t testing.TB, options HostOptions) *Hosts {
	t.Helper()
	sharedMutex.Lock()
	defer sharedMutex.Unlock()
	key := fmt.Sprintf("%+v", options)
	bed := sharedHosts[key]
	if bed == nil {
		bed = startHosts(t, options)
		sharedHosts[key] = bed
	}
	bed.logFailure(t)
	return bed
}

// CloseShared closes all shared beds.
func CloseShared() error {
	sharedMutex.Lock()
	defer sharedMutex.Unlock()
	var err error
	for options, bed := range shared {
		err = errors.Join(err, bed.Close())
		delete(shared, options)
	}
	for options, bed := range sharedHosts {
		err = errors.Join(err, bed.Close())
		delete(sharedHosts, options)
	}
	return err
}

// start starts a bed or fails the test.
func start(t testing.TB, options Options) *Bed {
	t.Helper()
	SkipIfShort(t)
	if _, _, err := options.install(t.Context()); err != nil { // not part of the bed's start
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience.Limit)
	defer cancel()
	bed, err := Start(ctx, options)
	if err != nil {
		t.Fatal(err)
	}
	return bed
}

// startHosts starts a bed of hosts or fails the test.
func startHosts(t testing.TB, options HostOptions) *Hosts {
	t.Helper()
	SkipIfShort(t)
	if _, err := options.prepare(t.Context()); err != nil { // not part of the bed's start
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience.Limit)
	defer cancel()
	bed, err := StartHosts(ctx, options)
	if err != nil {
		t.Fatal(err)
	}
	return bed
}

// logFailure makes a failing test log the last errors of the engines: only a few, so that the test's own message stays
// visible.
func (b *Bed) logFailure(t testing.TB) {
	t.Cleanup(func() {
		if !t.Failed() {
			return
		}
		for _, node := range b.Nodes {
			if wrong := node.errors(); wrong != "" {
				t.Logf("the engine of %s:\n%s", node.Name, wrong)
			}
		}
		if waits := b.waits(); waits != "" {
			t.Logf("what does not run:\n%s", waits)
		}
	})
}

// waits describes nodes that are not ready, and tasks that should run but don't, as reported by the first manager that
// answers.
func (b *Bed) waits() string {
	ctx, cancel := context.WithTimeout(context.Background(), patience.Limit)
	defer cancel()
	for _, node := range b.Nodes {
		if node.client == nil {
			continue // it never ran
		}
		nodes, err := node.Client().NodeList(ctx, swarm.NodeListOptions{})
		if err != nil {
			continue
		}
		tasks, err := node.Client().TaskList(ctx, swarm.TaskListOptions{})
		if err != nil {
			continue
		}
		var lines []string
		for _, n := range nodes {
			if n.Status.State != swarm.NodeStateReady || n.Spec.Availability != swarm.NodeAvailabilityActive {
				lines = append(lines, fmt.Sprintf("%s is %s, %s: %s", n.Description.Hostname, n.Status.State,
					n.Spec.Availability, n.Status.Message))
			}
		}
		for _, task := range tasks {
			if is := task.Status; task.DesiredState == swarm.TaskStateRunning && is.State != swarm.TaskStateRunning {
				lines = append(lines, fmt.Sprintf("task of service %s on node %q is %s since %s: %s %s",
					task.ServiceID, task.NodeID, is.State, is.Timestamp.Format(time.TimeOnly), is.Message, is.Err))
			}
		}
		return strings.Join(lines, "\n")
	}
	return ""
}

// lastWarnings prints the last warnings in a host's journal.
var lastWarnings = fmt.Sprintf("journalctl --quiet --boot --priority=warning --lines=%d --output=cat", errorTail)

// logFailure makes a failing test log the last warnings of the hosts.
func (b *Hosts) logFailure(t testing.TB) {
	t.Cleanup(func() {
		if !t.Failed() {
			return
		}
		ctx, cancel := context.WithTimeout(context.Background(), patience.Limit)
		defer cancel()
		for _, host := range b.Hosts {
			wrong, err := host.Run(ctx, lastWarnings)
			if err != nil {
				wrong = err.Error()
			}
			if wrong != "" {
				t.Logf("%s:\n%s", host.Name, wrong)
			}
		}
	})
}

// Home returns the home directory of a user who logs in on the hosts without any option: with the key that they accept,
// and known_hosts with theirs.
func (b *Hosts) Home(t testing.TB) string {
	t.Helper()
	home := t.TempDir()
	if err := os.Mkdir(filepath.Join(home, ".ssh"), 0o700); err != nil {
		t.Fatal(err)
	}
	for name, file := range map[string]string{"id_ed25519": b.KeyFile, "known_hosts": b.KnownHosts} {
		if err := os.Symlink(file, filepath.Join(home, ".ssh", name)); err != nil {
			t.Fatal(err)
		}
	}
	return home
}
