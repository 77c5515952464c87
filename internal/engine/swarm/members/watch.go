package members

import (
	"context"
	"hash/fnv"
	"sync"
	"time"

	"github.com/docker/docker/api/types/events"
	"github.com/docker/docker/api/types/filters"
	"github.com/docker/docker/api/types/swarm"

	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/swarm/dockerapi"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/swarm/spec"
)

const (
	// taskLook is the interval between polls of the tasks: the Engine has events for services, nodes and config
	// objects, but none for tasks. Events are reported with the next poll, as hundreds may come at once.
	taskLook = 200 * time.Millisecond
	// idleLook is the interval once nothing has changed for idleAfter polls.
	idleLook  = time.Second
	idleAfter = 50
	// crowdLook is added for each task that is on its way: with many of them, a caller that waits for all has time.
	crowdLook = 10 * time.Millisecond
)

// lookPace is the pace of slow polls if somebody waits for the result.
var lookPace = engine.Pace{Factor: 10, Longest: idleLook}

// watched are the events that are reported.
var watched = filters.NewArgs(
	filters.Arg("type", string(events.ServiceEventType)),
	filters.Arg("type", string(events.NodeEventType)),
	filters.Arg("type", string(events.ConfigEventType)),
)

// watcher polls the Swarm once for all watchers.
type watcher struct {
	mu      sync.Mutex
	present *watch
}

// watch lasts from the first watcher to the last.
type watch struct {
	changes map[chan struct{}]bool
	end     context.CancelFunc
}

// Watch reports events of the Swarm, and changes of the cluster's tasks.
func (e Members) Watch(ctx context.Context) (<-chan struct{}, error) {
	w := e.memory.watcher
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.present == nil {
		m, err := e.Connection.Manager(ctx)
		if err != nil {
			return nil, err
		}
		watching, end := context.WithCancel(context.WithoutCancel(ctx))
		messages, failures := m.Events(watching, events.ListOptions{Filters: watched})
		// The first poll comes before Watch returns, so that no later change is missed.
		first, _, err := e.taskStates(ctx)
		if err != nil {
			end()
			return nil, err
		}
		now := &watch{changes: map[chan struct{}]bool{}, end: end}
		w.present = now
		go func() {
			e.lookAgain(watching, first, messages, failures, func() { w.notify(now) })
			w.finish(now)
		}()
	}
	now, changes := w.present, make(chan struct{}, 1)
	now.changes[changes] = true
	context.AfterFunc(ctx, func() { w.leave(now, changes) })
	return changes, nil
}

// notify notifies all watchers of a change.
func (w *watcher) notify(now *watch) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for changes := range now.changes {
		select {
		case changes <- struct{}{}:
		default: // a change is pending already
		}
	}
}

// leave removes a watcher.
func (w *watcher) leave(now *watch, changes chan struct{}) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !now.changes[changes] {
		return
	}
	delete(now.changes, changes)
	close(changes)
	if len(now.changes) == 0 {
		w.forget(now)
	}
}

// finish closes the channels of all watchers.
func (w *watcher) finish(now *watch) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for changes := range now.changes {
		close(changes)
	}
	clear(now.changes)
	w.forget(now)
}

func (w *watcher) forget(now *watch) {
	now.end()
	if w.present == now {
		w.present = nil
	}
}

// lookAgain polls the Swarm, and reports events and changes since the last poll, until ctx is done or the manager can't
// be reached.
func (e Members) lookAgain(
	ctx context.Context, last uint64, messages <-chan events.Message, failures <-chan error, notify func(),
) {
	look := time.NewTimer(taskLook)
	defer look.Stop()
	pace := lookPace
	if e.Connection.Settings.Controller {
		pace = engine.ResidentPace
	}
	quiet, changed := 0, false
	for {
		select {
		case <-ctx.Done():
			return
		case <-failures: //nolint:errcheck // a waiting caller watches again, and gets the error then
			return
		case message := <-messages:
			if spec.IsQuiet(message.Actor.Attributes["name"]) {
				continue
			}
			changed = true
			if quiet >= idleAfter {
				quiet = 0
				look.Reset(taskLook)
			}
			continue
		case <-look.C:
		}
		start := time.Now()
		states, moving, err := e.taskStates(ctx)
		if err != nil {
			return
		}
		quiet++
		if states != last || changed {
			last, quiet, changed = states, 0, false
			notify()
		}
		rest := max(taskLook, pace.After(time.Since(start)), min(time.Duration(moving)*crowdLook, idleLook))
		if quiet >= idleAfter {
			rest = max(idleLook, rest)
		}
		look.Reset(rest)
	}
}

// taskStates returns a digest of the states of the cluster's tasks, and how many of them have not reached their desired
// state. It is never answered from earlier reads.
func (e Members) taskStates(ctx context.Context) (sum uint64, moving int, err error) {
	tasks, err := dockerapi.Live(e.Connection).Tasks(ctx)
	if err != nil {
		return 0, 0, err
	}
	// The order of a list of tasks is not defined.
	for _, task := range tasks {
		if container := task.Spec.ContainerSpec; container == nil || container.Labels[spec.LabelCluster] != e.Cluster {
			continue
		}
		sum += digestTask(task)
		if !dockerapi.Ended(task) && task.Status.State != task.DesiredState {
			moving++
		}
	}
	return sum, moving, nil
}

func digestTask(task swarm.Task) uint64 {
	digest := fnv.New64a()
	for _, part := range []string{task.ID, string(task.Status.State), string(task.DesiredState), task.Status.Err} {
		_, _ = digest.Write([]byte(part + "\x00")) // writing to a hash never fails
	}
	return digest.Sum64()
}
