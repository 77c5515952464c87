//go:build linux

package supervisor

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/fsnotify/fsnotify"
	"golang.org/x/sys/unix"

	"github.com/trainyard/terraform-provider-trainyard/internal/agent/proctree"
	"github.com/trainyard/terraform-provider-trainyard/internal/agent/statedir"
	"github.com/trainyard/terraform-provider-trainyard/internal/agent/units"
	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
)

// lookAfter is how often systemd is asked for units that have ended without a record.
const lookAfter = 5 * time.Second

// visibleGPUs is the variable with the GPUs of a member.
const visibleGPUs = "NVIDIA_VISIBLE_DEVICES"

// transient is the launcher whose instances are transient units of systemd.
type transient struct {
	// done is the context of all calls of the loop: it is done when the supervisor ends.
	done    context.Context
	dir     statedir.Dir
	log     *slog.Logger
	boot    string
	manager *units.Manager
	// self is the unit that the supervisor runs in; empty if it runs in none.
	self    string
	helpers units.Helpers
	// listed are the cluster's units in this turn of the loop; nil until they are needed.
	listed map[string]string

	mu sync.Mutex
	// watched are the running instances, by the names of their records' files.
	watched map[string]*unitInstance
}

// unitInstance is one run of a member's command, as a unit.
type unitInstance struct {
	atOnce

	launcher *transient
	unit     string
	spec     domain.MemberSpec
	// record is the file with the [units.Record], environment that with the variables, and script that with the
	// command; credentials is the folder of configs and secrets.
	record, environment, script, credentials string
	over                                     chan struct{}
	stopping                                 bool
}

// newTransient returns the launcher. It watches for the ends of instances until ctx is done.
func newTransient(ctx context.Context, dir statedir.Dir, log *slog.Logger, boot string) (*transient, error) {
	self, err := ownUnit("/proc/self/cgroup")
	if err != nil {
		return nil, err
	}
	helpers, err := units.WriteHelpers(dir.Path(statedir.Exits))
	if err != nil {
		return nil, err
	}
	t := &transient{
		done: ctx, dir: dir, log: log, boot: boot, manager: &units.Manager{}, self: self, helpers: helpers,
		watched: map[string]*unitInstance{},
	}
	watcher, err := fsnotify.NewWatcher()
	if err != nil {
		return nil, fmt.Errorf("watching the state directory: %w", err)
	}
	if err := watcher.Add(dir.Path(statedir.Exits)); err != nil {
		return nil, errors.Join(err, watcher.Close())
	}
	go t.follow(watcher)
	return t, nil
}

// ownUnit returns the service that this process runs in, by its cgroup file.
func ownUnit(cgroups string) (string, error) {
	content, err := os.ReadFile(cgroups) //nolint:gosec // of the process table
	if err != nil {
		return "", err
	}
	for line := range strings.Lines(string(content)) {
		controllers, path, _ := strings.Cut(strings.TrimSuffix(line, "\n"), ":/")
		if !strings.HasSuffix(controllers, ":") && !strings.HasSuffix(controllers, ":name=systemd") {
			continue // a hierarchy that systemd doesn't use to find processes
		}
		if unit := filepath.Base(path); strings.HasSuffix(unit, ".service") {
			return unit, nil
		}
	}
	return "", nil
}

// follow detects the ends of instances by their records, and regularly checks for those that ended without one.
func (t *transient) follow(watcher *fsnotify.Watcher) {
	defer t.manager.Close()
	defer watcher.Close()
	look := time.NewTicker(lookAfter)
	defer look.Stop()
	for {
		select {
		case <-t.done.Done():
			return
		case event := <-watcher.Events:
			t.mu.Lock()
			if i := t.watched[filepath.Base(event.Name)]; i != nil {
				t.settle(i)
			}
			t.mu.Unlock()
		case err := <-watcher.Errors:
			t.log.Warn("events were lost; rereading all records", "error", err)
			t.mu.Lock()
			for _, i := range t.watched {
				t.settle(i)
			}
			t.mu.Unlock()
		case <-look.C:
			t.lookForLost()
		}
	}
}

// settle reports the end of an instance if it is recorded. The lock is held.
func (t *transient) settle(i *unitInstance) {
	if _, complete := units.ReadRecord(i.record); complete {
		t.end(i)
	}
}

// end reports the end of an instance. The lock is held.
func (t *transient) end(i *unitInstance) {
	if t.watched[filepath.Base(i.record)] == i {
		delete(t.watched, filepath.Base(i.record))
		close(i.over)
	}
}

// lookForLost reports the end of instances whose units are gone, such as those that could not even record their end.
func (t *transient) lookForLost() {
	t.mu.Lock()
	before := make([]*unitInstance, 0, len(t.watched))
	for _, i := range t.watched {
		before = append(before, i)
	}
	t.mu.Unlock()
	if len(before) == 0 {
		return
	}
	listed, err := t.manager.List(t.done, t.dir.Cluster)
	if err != nil {
		t.log.Error("can't list the units of members; retrying", "error", err)
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, i := range before {
		if listed[i.unit] == "" {
			t.end(i) // a record written meanwhile is read later
		}
	}
}

// watch starts watching for the end of an instance.
func (t *transient) watch(i *unitInstance) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.watched[filepath.Base(i.record)] = i
	t.settle(i)
}

func (t *transient) turn() { t.listed = nil }

func (t *transient) contained(domain.MemberSpec) bool { return false }
func (t *transient) gone(string) bool                 { return true }

// units returns the cluster's current units, with their states.
func (t *transient) units() (map[string]string, error) {
	if t.listed == nil {
		listed, err := t.manager.List(t.done, t.dir.Cluster)
		if err != nil {
			return nil, err
		}
		t.listed = listed
	}
	return t.listed, nil
}

func (t *transient) instance(spec domain.MemberSpec, member, id string) *unitInstance {
	record := t.dir.Exit(member, id)
	return &unitInstance{
		launcher: t, unit: units.Name(t.dir.Cluster, member, id), spec: spec, over: make(chan struct{}),
		record: record, environment: record + ".env", script: record + ".sh", credentials: record + ".credentials",
	}
}

func (t *transient) start(spec domain.MemberSpec, id string) (instance, error) {
	i := t.instance(spec, spec.Name, id)
	place, err := t.prepare(i, id)
	if err != nil {
		i.delete()
		return nil, err
	}
	err = t.manager.Start(t.done, i.unit, units.Properties(spec, place))
	switch {
	case errors.Is(err, units.ErrUncertain):
		return nil, fmt.Errorf("%w: %w", errUncertain, err)
	case errors.Is(err, units.ErrInvalid):
		i.delete()
		return nil, &commandError{err}
	case err != nil:
		i.delete()
		return nil, err
	}
	t.watch(i)
	return i, nil
}

// prepare creates what an instance needs before its unit starts.
func (t *transient) prepare(i *unitInstance, id string) (units.Place, error) {
	spec := i.spec
	place := units.Place{
		Environment: i.environment, Script: i.script, Log: t.dir.Log(spec.Name), Record: i.record,
		Supervisor: t.self, Helpers: t.helpers, GPUs: units.FindGPUs(spec.Env[visibleGPUs], units.Driver),
	}
	if _, err := os.Stat("/dev/infiniband"); err == nil {
		place.Fabric = true
	}
	user, err := findAccount(spec.Container.User)
	if err != nil {
		return place, &commandError{err}
	}
	folder := spec.WorkingDir
	if folder == "" {
		folder = t.dir.WorkDir(spec.Name)
		if err := os.MkdirAll(folder, 0o700); err != nil {
			return place, err
		}
		if err := user.own(folder); err != nil {
			return place, err
		}
	}
	if info, err := os.Stat(folder); err != nil || !info.IsDir() {
		return place, &commandError{fmt.Errorf("its working directory %q is not a folder", folder)}
	}
	command, err := Command(spec.Argv(), folder, spec.Env)
	if err != nil {
		return place, &commandError{err}
	}
	variables := map[string]string{proctree.InstanceVariable: id}
	for name, value := range spec.Env {
		if name != proctree.InstanceVariable {
			variables[name] = value
		}
	}
	if len(spec.Container.Configs)+len(spec.Container.Secrets) > 0 {
		variables[domain.CredentialsVariable] = i.credentials
	}
	environment, script, err := units.Start(folder, command, variables)
	if err != nil {
		return place, &commandError{err}
	}
	if err := t.writeFilesOf(spec, user); err != nil {
		return place, err
	}
	if err := user.execute(command[0]); err != nil {
		return place, &commandError{err}
	}
	if err := t.writeCredentials(i.credentials, spec, user); err != nil {
		return place, err
	}
	if err := user.enter(folder); err != nil {
		return place, &commandError{
			fmt.Errorf("its working directory %q can't be entered as user %q: %w", folder, spec.Container.User, err),
		}
	}
	if err := os.WriteFile(i.environment, environment, 0o600); err != nil {
		return place, err
	}
	if err := os.WriteFile(i.script, script, 0o600); err != nil {
		return place, err
	}
	if err := user.own(i.script); err != nil {
		return place, err
	}
	return place, units.Prepare(i.record)
}

// writeFilesOf creates the files, folders and log of a member, and gives them to its user.
func (t *transient) writeFilesOf(spec domain.MemberSpec, user *account) error {
	files := t.dir.FilesDir(spec.Name)
	if err := writeFiles(files, spec.Files); err != nil {
		return err
	}
	for _, file := range spec.Files {
		if err := user.own(filepath.Join(files, file.Name)); err != nil {
			return err
		}
	}
	if err := user.openWay(t.dir, spec.Name); err != nil {
		return err
	}
	if spec.Kept != "" {
		if err := user.keepFiles(spec.Kept, spec.Files); err != nil {
			return &commandError{fmt.Errorf("its folder %q can't be created: %w", spec.Kept, err)}
		}
	}
	log, err := t.dir.OpenLog(spec.Name)
	if err != nil {
		return err
	}
	if err := log.Close(); err != nil {
		return err
	}
	// The owner can open it again, as programs do that write to /dev/stderr.
	return user.own(t.dir.Log(spec.Name))
}

// find finds the unit of a member by its name.
func (t *transient) find(member string) (state statedir.State, err error) {
	listed, err := t.units()
	if err != nil {
		return state, err
	}
	for name := range listed {
		if id := units.InstanceOf(name); name == units.Name(t.dir.Cluster, member, id) {
			state = statedir.State{Name: member, State: domain.StateRunning, Boot: t.boot, Instance: id}
		}
	}
	return state, nil
}

func (t *transient) adopt(state *statedir.State, spec domain.MemberSpec) (instance, error) {
	i := t.instance(spec, state.Name, state.Instance)
	if state.Boot != t.boot {
		close(i.over)
		return i, nil
	}
	listed, err := t.units()
	if err != nil {
		return nil, err
	}
	if listed[i.unit] != "" {
		t.watch(i)
		return i, nil
	}
	if _, complete := units.ReadRecord(i.record); !complete && state.State == domain.StatePending {
		i.delete()
		return nil, errNeverStarted
	}
	close(i.over)
	return i, nil
}

func (i *unitInstance) process() proctree.Process { return proctree.Process{} }

func (i *unitInstance) ended() <-chan struct{} { return i.over }

// terminate stops the unit, which systemd would kill after the grace period and a margin.
func (i *unitInstance) terminate(now, killAt time.Time) (next time.Time, err error) {
	manager, ctx := i.launcher.manager, i.launcher.done
	if !i.stopping {
		listed, err := i.launcher.units()
		if err != nil {
			return time.Time{}, err
		}
		// Stopping a unit that is still starting would skip its stop command, which signals all its processes.
		if listed[i.unit] == units.Activating && killAt.After(now) {
			return now.Add(sweep), nil
		}
		if err := manager.Stop(ctx, i.unit); err != nil && !errors.Is(err, units.ErrGone) {
			return time.Time{}, err
		}
		i.stopping = true
	}
	if killAt.After(now) {
		return killAt, nil
	}
	if err := manager.Kill(ctx, i.unit); err != nil && !errors.Is(err, units.ErrGone) {
		return time.Time{}, err
	}
	return now.Add(tick), nil
}

func (i *unitInstance) clear() (bool, error) {
	record, _ := units.ReadRecord(i.record)
	left := record.Left()
	for _, pid := range left {
		_ = unix.Kill(pid, unix.SIGKILL) // it may be gone already
	}
	return len(left) == 0, nil
}

func (i *unitInstance) result() result {
	record, complete := units.ReadRecord(i.record)
	code, known := record.ExitCode()
	if !complete || !known {
		return result{code: lostExitCode, lost: "its unit left no exit code"}
	}
	r := result{code: code, asked: record.Asked, settled: !record.Asked}
	if record.OOMKills > 0 {
		r.outOfMemory(i.spec.Resources.Limits.MemoryMiB, !record.NeverFull)
	}
	return r
}

// resizing bounds how long systemd may take to change limits.
const resizing = 5 * time.Second

func (i *unitInstance) resize(to domain.Resources) error {
	ctx, cancel := context.WithTimeout(i.launcher.done, resizing)
	defer cancel()
	if err := i.launcher.manager.Raise(ctx, i.unit, to); err != nil {
		return err
	}
	i.spec.Resources.Limits.MemoryMiB = max(i.spec.Resources.Limits.MemoryMiB, to.MemoryMiB)
	return nil
}

func (i *unitInstance) delete() {
	_ = os.RemoveAll(i.credentials)
	_ = statedir.Delete(i.script)
	_ = statedir.Delete(i.environment)
	_ = statedir.Delete(i.record)
}
