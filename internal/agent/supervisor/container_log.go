//go:build linux

package supervisor

import (
	"context"
	"errors"
	"time"

	"github.com/trainyard/terraform-provider-trainyard/internal/agent/containers"
	"github.com/trainyard/terraform-provider-trainyard/internal/agent/statedir"
)

// logPatience is how long a container's end waits for its last output.
const logPatience = 2 * time.Second

// logCopy copies what a container writes to its member's log.
type logCopy struct {
	dir    statedir.Dir
	member string
	// copying is closed when a copy that follows the container has ended; nil if none was started.
	copying chan struct{}
	cancel  context.CancelFunc
	// unreadable is set if the Engine can't read the container's log, which is known once a copy has ended.
	unreadable bool
}

// newLogCopy begins the log of an instance.
func newLogCopy(dir statedir.Dir, member string) (*logCopy, error) {
	log, err := dir.CopyLog(member, time.Now())
	if err != nil {
		return nil, err
	}
	return continueLogCopy(dir, member), log.Close()
}

func continueLogCopy(dir statedir.Dir, member string) *logCopy {
	return &logCopy{dir: dir, member: member}
}

// follow starts copying the log as it is written, unless that is running already.
func (l *logCopy) follow(i *containerInstance) {
	if l.copying != nil && (!isClosed(l.copying) || l.unreadable) {
		return
	}
	var ctx context.Context
	ctx, l.cancel = context.WithCancel(i.launcher.done)
	l.copying = make(chan struct{})
	go func() {
		defer close(l.copying)
		err := l.copy(ctx, i, true) // what it misses is copied later
		if _, refused := errors.AsType[*containers.RefusedError](err); refused {
			l.unreadable = true
			i.launcher.log.Warn("can't read a container's output", "container", i.name, "error", err)
		}
	}()
}

// broken reports whether following the log of a running container has to be restarted.
func (l *logCopy) broken() bool { return l.copying != nil && isClosed(l.copying) && !l.unreadable }

// finish copies what is left when the container has ended.
func (l *logCopy) finish(i *containerInstance) {
	if l.copying != nil {
		select {
		case <-l.copying:
		case <-time.After(logPatience):
		}
		l.cancel()
		<-l.copying
	}
	if l.unreadable {
		return
	}
	err := l.copy(i.launcher.done, i, false)
	if err != nil && !errors.Is(err, containers.ErrGone) {
		i.launcher.log.Warn("can't read the end of a container's log", "container", i.name, "error", err)
	}
}

func (l *logCopy) copy(ctx context.Context, i *containerInstance, follow bool) error {
	log, err := l.dir.ContinueLog(l.member)
	if err != nil {
		return err
	}
	err = i.launcher.engine.Log(ctx, i.name, log.Since(), follow, log.Write)
	return errors.Join(err, log.Close())
}
