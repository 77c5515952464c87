//go:build linux

package supervisor

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/trainyard/terraform-provider-trainyard/internal/agent/containers"
	"github.com/trainyard/terraform-provider-trainyard/internal/agent/statedir"
	"github.com/trainyard/terraform-provider-trainyard/internal/agent/units"
	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
)

const (
	// reconnectAfter is the pause before an Engine that didn't answer is tried again.
	reconnectAfter = 500 * time.Millisecond
	// lookAtAllAfter is how often containers are inspected without an event.
	lookAtAllAfter = 30 * time.Second
	// startsAtOnce is how many containers are started at the same time: more would only wait for each other in the
	// kernel.
	startsAtOnce = 8
)

// contained is the launcher whose instances are containers of the host's Docker Engine. The loop never waits for the
// Engine: each instance has its own goroutine for that.
type contained struct {
	// done is the context of all calls to the Engine: it is done when the supervisor ends.
	done   context.Context
	dir    statedir.Dir
	log    *slog.Logger
	boot   string
	engine *containers.Engine
	// manager provides the state of the Engine's own unit.
	manager *units.Manager
	slots   chan struct{}
	// needed is closed once there is a container; until then, an Engine that is not running is not started.
	needed func()

	mu sync.Mutex
	// running are the instances by container name, and removing counts those that are being removed, by member.
	running  map[string]*containerInstance
	removing map[string]int
	session  session
	// unit is the service of the Engine, as it was looked up in a session.
	unit engineUnit
	// changed is closed when the session changes.
	changed chan struct{}
}

// session is what is known about the Engine.
type session struct {
	// up is set while it answers, with the facts; why is the reason if it doesn't. It is nil before the first attempt.
	up    bool
	facts containers.Facts
	why   error
	// breaks counts how often it stopped answering.
	breaks int
}

// newContained returns the launcher, which follows the Engine until ctx is done.
func newContained(
	ctx context.Context, dir statedir.Dir, log *slog.Logger, boot string, manager *units.Manager,
) (*contained, error) {
	docker, err := containers.Open(containers.Socket)
	if err != nil {
		return nil, err
	}
	needed := make(chan struct{})
	c := &contained{
		done: ctx, dir: dir, log: log, boot: boot, engine: docker, manager: manager,
		slots:   make(chan struct{}, startsAtOnce),
		needed:  sync.OnceFunc(func() { close(needed) }),
		running: map[string]*containerInstance{}, removing: map[string]int{}, changed: make(chan struct{}),
	}
	if left, err := c.folders("*"); err != nil || len(left) > 0 {
		c.needed()
	}
	go func() {
		select {
		case <-needed:
			c.follow()
		case <-ctx.Done():
		}
	}()
	return c, nil
}

// folders returns the folders of a member's instances, or of all that match a pattern.
func (c *contained) folders(member string) ([]string, error) {
	return filepath.Glob(c.dir.ContainerFolder(member, "*"))
}

// follow maintains the connection to the Engine.
func (c *contained) follow() {
	go func() {
		for {
			select {
			case <-time.After(lookAtAllAfter):
				c.sweep()
			case <-c.done.Done():
				return
			}
		}
	}()
	for c.done.Err() == nil {
		err := c.engine.Watch(c.done, c.dir.Cluster, c.arrive, func(name string) {
			c.mu.Lock()
			defer c.mu.Unlock()
			if i := c.running[name]; i != nil {
				i.look()
			}
		})
		c.lose(err)
		select {
		case <-time.After(reconnectAfter):
		case <-c.done.Done():
		}
	}
}

// arrive begins a session.
func (c *contained) arrive() error {
	facts, err := c.engine.Facts(c.done)
	if err != nil {
		return err
	}
	c.mu.Lock()
	c.session.up, c.session.facts, c.session.why = true, facts, nil
	c.notify()
	c.mu.Unlock()
	go c.sweep()
	return nil
}

// lose ends a session, or an attempt at one.
func (c *contained) lose(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.session.up && c.done.Err() == nil {
		c.log.Warn("the Docker Engine no longer answers; retrying", "error", err)
		c.session.breaks++
	}
	c.session.up, c.session.why = false, err
	c.notify()
}

// notify notifies of a change of the session. The lock is held.
func (c *contained) notify() {
	close(c.changed)
	c.changed = make(chan struct{})
}

// state returns the current session, and a channel that is closed when it changes.
func (c *contained) state() (session, <-chan struct{}) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.session, c.changed
}

// await returns the facts about the Engine once it has answered, or why it doesn't.
func (c *contained) await(ctx context.Context) (containers.Facts, error) {
	for {
		s, changed := c.state()
		if s.up || s.why != nil {
			return s.facts, s.why
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return s.facts, ctx.Err()
		}
	}
}

// engineUnit is the service that runs an Engine, in the session after this many breaks; empty for none.
type engineUnit struct {
	name   string
	known  bool
	breaks int
}

// engineStopped returns when the Engine was last stopped, or ended by itself, and when it was back, in the session
// after this many breaks; both are zero if it never stopped, or runs in no service.
func (c *contained) engineStopped(breaks int) (from, until time.Time, err error) {
	c.mu.Lock()
	unit := c.unit
	c.mu.Unlock()
	if !unit.known || unit.breaks != breaks {
		pid, err := c.engine.Listener(c.done)
		if err != nil {
			return from, until, err
		}
		unit = engineUnit{known: true, breaks: breaks}
		if unit.name, err = c.manager.Serving(c.done, containers.Socket, pid); err != nil &&
			!errors.Is(err, units.ErrGone) {
			return from, until, err
		}
		c.mu.Lock()
		c.unit = unit
		c.mu.Unlock()
	}
	if unit.name == "" {
		return from, until, nil
	}
	return c.manager.Stopped(c.done, unit.name)
}

// start creates and starts a container.
func (c *contained) start(spec domain.MemberSpec, id string) *containerInstance {
	i := c.instance(spec, spec.Name, id)
	go i.live(i.begin)
	return i
}

// adopt takes over an instance, whatever became of it.
func (c *contained) adopt(state statedir.State, spec domain.MemberSpec) *containerInstance {
	i := c.instance(spec, state.Name, state.Instance)
	if state.State == domain.StateRunning {
		close(i.runs)
	}
	go i.live(nil)
	return i
}

// find derives the state of a member from the folder of its instance.
func (c *contained) find(member string) (state statedir.State, err error) {
	folders, err := c.folders(member)
	var newest time.Time
	for _, folder := range folders {
		info, errInfo := os.Stat(folder)
		if _, id, is := statedir.ContainerOf(folder); is && errInfo == nil && info.ModTime().After(newest) {
			newest = info.ModTime()
			state = statedir.State{
				Name: member, State: domain.StateRunning, Boot: c.boot, Instance: id, Container: true,
			}
		}
	}
	return state, err
}

func (c *contained) instance(spec domain.MemberSpec, member, id string) *containerInstance {
	i := &containerInstance{
		launcher: c, spec: spec, member: member, id: id, name: containers.Name(c.dir.Cluster, member, id),
		folder: c.dir.ContainerFolder(member, id), runs: make(chan struct{}), over: make(chan struct{}),
		asked: make(chan struct{}), forced: make(chan struct{}), news: make(chan struct{}, 1),
	}
	c.mu.Lock()
	c.running[i.name] = i
	c.mu.Unlock()
	c.needed()
	return i
}

// remove removes what is left of an ended instance. What can't be removed now is swept later.
func (c *contained) remove(i *containerInstance) {
	c.mu.Lock()
	c.removing[i.member]++
	c.mu.Unlock()
	go func() {
		c.discard(i.name, i.folder)
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.running, i.name)
		if c.removing[i.member]--; c.removing[i.member] == 0 {
			delete(c.removing, i.member)
		}
	}()
}

// discard removes a container and its folder. The folder's content, which may be secret, is removed even if the
// container can't be.
func (c *contained) discard(name, folder string) {
	left, err := os.ReadDir(folder)
	for _, entry := range left {
		err = errors.Join(err, os.RemoveAll(filepath.Join(folder, entry.Name())))
	}
	if err = errors.Join(c.engine.Remove(c.done, name), unlessAbsent(err)); err == nil {
		err = os.RemoveAll(folder)
	}
	if err != nil && c.done.Err() == nil {
		c.log.Warn("can't remove a container that has ended; retrying later", "container", name, "error", err)
	}
}

func unlessAbsent(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

func (c *contained) gone(member string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.removing[member] == 0
}

// sweep removes what is left of unknown instances: the supervisor that should have removed them died, or the Engine was
// down.
func (c *contained) sweep() {
	left := map[string]string{} // container names to folders
	members := map[string][2]string{}
	add := func(member, id string) {
		name := containers.Name(c.dir.Cluster, member, id)
		left[name], members[name] = c.dir.ContainerFolder(member, id), [2]string{member, id}
	}
	listed, err := c.engine.List(c.done, c.dir.Cluster)
	if err != nil {
		return // the Engine is down again
	}
	for _, found := range listed {
		add(found.Member, found.Instance)
	}
	folders, err := c.folders("*")
	if err != nil {
		return
	}
	for _, folder := range folders {
		if member, id, is := statedir.ContainerOf(folder); is {
			add(member, id)
		}
	}
	for name, folder := range left {
		c.mu.Lock()
		known := c.running[name] != nil
		c.mu.Unlock()
		if !known && c.stray(members[name][0], members[name][1]) {
			c.discard(name, folder)
		}
	}
}

// stray reports whether an instance is known not to be its member's current one.
func (c *contained) stray(member, id string) bool {
	state, err := statedir.Read[statedir.State](c.dir.Document(statedir.States, member))
	if errors.Is(err, engine.ErrNotFound) {
		_, err := statedir.Read[domain.MemberSpec](c.dir.Document(statedir.Specs, member))
		return errors.Is(err, engine.ErrNotFound)
	}
	live := state.State == domain.StateRunning || state.State == domain.StatePending
	return err == nil && (!live || state.Instance != id)
}
