//go:build linux

// Package supervisor runs the members of one cluster on one machine: one supervisor for all of them, driven by the
// files of a state directory.
//
// The supervisor may die at any point without taking anything with it: each member leaves its exit code behind, writes
// its log itself, and is found again by the next supervisor. Launchers take care of that. A process runs under a small
// shell (see shell.sh), and is found in the process table; a transient systemd unit and a container are found by their
// names.
package supervisor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/fsnotify/fsnotify"

	"github.com/trainyard/terraform-provider-trainyard/internal/agent/proctree"
	"github.com/trainyard/terraform-provider-trainyard/internal/agent/statedir"
	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
)

const (
	// tick is how often logs of running members are maintained, and how soon failures are retried.
	tick = time.Second
	// sweep is how soon killed processes are looked for again.
	sweep = 10 * time.Millisecond
	// takeover is how long a new supervisor waits for its predecessor to end.
	takeover = 2 * time.Second
)

// supervisor is the state of the loop. Only the loop's goroutine uses it.
type supervisor struct {
	dir      statedir.Dir
	log      *slog.Logger
	boot     string
	launcher launcher
	members  map[string]*member
	// news receives the names of members whose instance has started, or ended.
	news chan string
	// logsDue is when the logs are maintained next.
	logsDue time.Time
}

// AtWork returns the running supervisor of a cluster, and false if there is none.
func AtWork(dir statedir.Dir) (engine.Holder, bool, error) {
	holder, held, err := dir.Holder(statedir.SupervisorLock)
	if err != nil || !held || holder.Process == 0 {
		return holder, false, err
	}
	// A caller of this function holds the lock for an instant too, and the note may be that of a killed supervisor.
	process, err := proctree.Lookup(holder.Process)
	if errors.Is(err, proctree.ErrGone) {
		return holder, false, nil
	}
	return holder, err == nil && process.StartTime == holder.StartTime, err
}

// Options configure a supervisor.
type Options struct {
	// Version is that of the program.
	Version string
	// Units makes members run as transient units of systemd, and those with an image as containers of the Docker
	// Engine, rather than as processes of the supervisor.
	Units bool
}

// Run supervises the members of the cluster until the cluster is gone, or ctx is done; then it leaves the members
// running for its successor. It returns at once if another supervisor is running.
func Run(ctx context.Context, dir statedir.Dir, options Options, log *slog.Logger) error {
	lock, err := acquire(ctx, dir)
	var locked *engine.LockedError
	if errors.As(err, &locked) || errors.Is(err, engine.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	defer func() { _ = lock.Release() }() // it ends with the process anyway
	boot, err := proctree.BootID("/proc")
	if err != nil {
		return err
	}
	s := &supervisor{dir: dir, log: log, boot: boot, members: map[string]*member{}, news: make(chan string)}
	s.launcher = &processes{dir: dir, log: log, boot: boot}
	if options.Units {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		if s.launcher, err = newMixed(ctx, dir, log, boot); err != nil {
			return err
		}
	}
	return s.run(ctx, lock, options.Version)
}

// acquire takes the supervisor's lock. It retries for a moment, since a check for a running supervisor holds the lock
// for an instant too.
func acquire(ctx context.Context, dir statedir.Dir) (*statedir.Lock, error) {
	ctx, cancel := context.WithTimeout(ctx, takeover)
	defer cancel()
	for {
		lock, err := dir.Lock(statedir.SupervisorLock,
			engine.Holder{Who: "supervisor", Operation: "starting", Since: time.Now()})
		if _, locked := errors.AsType[*engine.LockedError](err); !locked {
			return lock, err
		}
		if _, atWork, errAtWork := AtWork(dir); atWork || errAtWork != nil {
			return nil, errors.Join(err, errAtWork)
		}
		select {
		case <-ctx.Done():
			return nil, err
		case <-time.After(sweep):
		}
	}
}

func (s *supervisor) run(ctx context.Context, lock *statedir.Lock, version string) error {
	watcher, err := fsnotify.NewWatcher()
	if err != nil {
		return fmt.Errorf("watching the state directory: %w", err)
	}
	defer watcher.Close()
	for _, folder := range []string{statedir.Documents, statedir.Starts, statedir.Specs, statedir.Stops} {
		if err := watcher.Add(s.dir.Path(folder)); err != nil {
			return err
		}
	}
	if err := s.adopt(); err != nil {
		return err
	}
	self, err := proctree.Lookup(os.Getpid())
	if err != nil {
		return err
	}
	atWork := engine.Holder{
		Who: "supervisor", Process: self.PID, StartTime: self.StartTime, Operation: "supervision", Since: time.Now(),
		Version: version,
	}
	if err := lock.Note(atWork); err != nil {
		return err
	}
	if err := s.dir.Sweep(time.Now()); err != nil {
		s.log.Warn("can't delete leftover temporary files", "error", err)
	}
	changed := true
	for {
		var retry time.Time
		if changed && !s.reload() {
			retry = time.Now().Add(tick)
		}
		now := time.Now()
		next := earlier(s.step(now), retry)
		if !s.logsDue.After(now) {
			s.keepLogs(time.Now()) // with what the members have written that this turn started
			s.logsDue = now.Add(tick)
		}
		if len(s.members) == 0 {
			if exists, err := s.dir.Exists(); err == nil && !exists {
				return nil
			}
		}
		timer := time.NewTimer(time.Until(next))
		changed = false
		select {
		case <-ctx.Done():
			timer.Stop()
			return nil
		case name := <-s.news:
			s.note(name)
		case <-watcher.Events:
			changed = true
		case err := <-watcher.Errors:
			s.log.Warn("events were lost; rereading everything", "error", err)
			changed = true
		case <-timer.C:
			changed = !retry.IsZero() || s.missing()
		}
		timer.Stop()
		changed = s.drain(watcher) || changed
	}
}

// drain takes all pending events, so that simultaneous ones are handled together.
func (s *supervisor) drain(watcher *fsnotify.Watcher) (changed bool) {
	for {
		select {
		case name := <-s.news:
			s.note(name)
		case <-watcher.Events:
			changed = true
		default:
			return changed
		}
	}
}

// missing reports whether the instance of some member has to be looked for.
func (s *supervisor) missing() bool {
	for _, m := range s.members {
		if m.lost {
			return true
		}
	}
	return false
}

func (s *supervisor) note(name string) {
	if m := s.members[name]; m != nil && m.instance != nil {
		m.note(time.Now())
	}
}

// reload reads specifications and requests. What can't be read stays as it was and has to be read again, and the result
// is false.
func (s *supervisor) reload() (complete bool) {
	complete = s.release()
	specs, err := s.dir.List(statedir.Specs)
	if err != nil {
		s.log.Error("can't list specifications; retrying", "error", err)
		return false
	}
	stops, err := s.dir.List(statedir.Stops)
	if err != nil {
		s.log.Error("can't list stop requests; retrying", "error", err)
		return false
	}
	for name, stamp := range specs {
		m := s.members[name]
		if m == nil {
			m = &member{name: name}
			s.members[name] = m
		}
		if m.lost {
			m.recall(s)
		}
		if m.spec == nil || m.stamp != stamp {
			m.load(s, stamp)
			m.resize(s)
		}
		if _, asked := stops[name]; asked && m.stop == nil ||
			m.stop != nil && m.spec != nil && m.stop.Run != m.spec.Run {
			m.loadStop(s)
		}
		complete = complete && !m.unread && !m.lost
	}
	for name, m := range s.members {
		if _, there := specs[name]; there {
			continue
		}
		m.spec, m.unread = nil, false
		if m.lost {
			m.find(s) // a member can be forgotten even if it can't be read
		}
		complete = complete && !m.lost
	}
	return complete
}

// release puts the staged specifications in force whose start was requested. It returns false if that has to be
// retried.
func (s *supervisor) release() (complete bool) {
	starts, err := s.dir.List(statedir.Starts)
	if err != nil {
		s.log.Error("can't list start requests; retrying", "error", err)
		return false
	}
	complete = true
	// Earlier runs come first: a later one drops what is staged for them.
	for _, name := range slices.SortedFunc(maps.Keys(starts), func(a, b string) int {
		return cmp.Compare(runOf(a), runOf(b))
	}) {
		if err := s.releaseStart(name); err != nil {
			s.log.Error("can't release staged members; retrying", "start", name, "error", err)
			complete = false
		}
	}
	return complete
}

// claimed is the suffix of the name of a request that a supervisor is handling.
const claimed = ".claimed"

// runOf returns the run of a start request, by its name.
func runOf(request string) int {
	request = strings.TrimSuffix(request, claimed)
	run, err := strconv.Atoi(request[strings.LastIndex(request, ".")+1:])
	if err != nil {
		return 0 // it is somebody else's
	}
	return run
}

// releaseStart puts in force the staged specifications of a request, once all of them can be read. What was staged for
// an earlier run belongs to an apply that died, and is dropped.
func (s *supervisor) releaseStart(request string) error {
	// Claimed before anything is read, so that a request made in the meantime is a separate one.
	if !strings.HasSuffix(request, claimed) {
		if err := os.Rename(s.dir.Document(statedir.Starts, request),
			s.dir.Document(statedir.Starts, request+claimed)); err != nil && !os.IsNotExist(err) {
			return err
		}
		request += claimed
	}
	start, err := statedir.Read[statedir.Start](s.dir.Document(statedir.Starts, request))
	if errors.Is(err, engine.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	staged, err := s.dir.List(statedir.Staged)
	if err != nil {
		return err
	}
	specs := map[string]domain.MemberSpec{}
	for name := range staged {
		if !statedir.MayBeOf(name, start.Group) {
			continue
		}
		spec, err := statedir.Read[domain.MemberSpec](s.dir.Document(statedir.Staged, name))
		if errors.Is(err, engine.ErrNotFound) {
			continue // removed in the meantime
		}
		if err != nil {
			return err
		}
		if spec.Group == start.Group {
			specs[name] = spec
		}
	}
	for _, name := range slices.Sorted(maps.Keys(specs)) {
		from := s.dir.Document(statedir.Staged, name)
		switch spec := specs[name]; {
		case spec.Run < start.Run:
			err = statedir.Delete(from)
		case start.Starts(spec):
			if err = os.Rename(from, s.dir.Document(statedir.Specs, name)); os.IsNotExist(err) {
				err = nil
			}
		}
		if err != nil {
			return err
		}
	}
	return statedir.Delete(s.dir.Document(statedir.Starts, request))
}

// step moves every member as far as possible, and returns when to call it again if there is no event.
func (s *supervisor) step(now time.Time) (next time.Time) {
	s.launcher.turn()
	next = now.Add(time.Hour)
	// Ends are recorded before the launcher reads the process table: a table from before a command's end may lack what
	// it left behind.
	for _, m := range s.members {
		if m.instance != nil {
			m.note(now)
		}
	}
	// Ending instances come first: a group's members are started once none of it is being ended.
	for _, m := range s.members {
		if m.instance != nil {
			next = earlier(next, m.end(s, now))
		}
	}
	ending := map[string]bool{}
	for _, m := range s.members {
		if m.instance != nil && !m.wanted() {
			ending[m.state.Group] = true
		}
	}
	for name, m := range s.members {
		if m.instance == nil {
			next = earlier(next, m.settle(s, now, ending[m.group()]))
			if m.instance != nil && m.instance.exited {
				next = now // it ended while it was being started
			}
		}
		if m.forgotten {
			delete(s.members, name)
		}
		if m.instance != nil && m.unsaved {
			m.save(s)
		}
		if m.instance != nil || m.unsaved {
			next = earlier(next, now.Add(tick))
		}
	}
	return next
}

func earlier(a, b time.Time) time.Time {
	if b.IsZero() || a.Before(b) {
		return a
	}
	return b
}

// keepLogs maintains the logs of the running members.
func (s *supervisor) keepLogs(now time.Time) {
	for _, m := range s.members {
		if m.instance != nil {
			m.keepLog(s, now)
		}
	}
}

// keepLog maintains the member's log. The logs of containers are maintained where they are copied.
func (m *member) keepLog(s *supervisor, now time.Time) {
	if m.state.Container {
		return
	}
	if size, err := s.dir.KeepLog(m.name, m.logSize, now); err == nil {
		m.logSize = size
	}
}

// adopt takes over what a predecessor left: states, and the instances that still run.
func (s *supervisor) adopt() error {
	for _, folder := range []string{statedir.States, statedir.Specs} {
		names, err := s.dir.List(folder)
		if err != nil {
			return err
		}
		for name := range names {
			if s.members[name] == nil {
				m := &member{name: name}
				s.members[name] = m
				m.recall(s)
			}
		}
	}
	return nil
}

// Executable returns a path of this program that stays valid when its file is replaced or deleted.
func Executable() string {
	path, err := os.Executable()
	if _, errStat := os.Stat(path); err != nil || errStat != nil {
		return filepath.Join("/proc", fmt.Sprint(os.Getpid()), "exe")
	}
	return path
}
