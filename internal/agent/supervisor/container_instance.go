//go:build linux

package supervisor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/trainyard/terraform-provider-trainyard/internal/agent/containers"
	"github.com/trainyard/terraform-provider-trainyard/internal/agent/proctree"
	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
)

// containerInstance is one run of a member's command, as a container. Its goroutine, live, talks to the Engine; the
// loop tells live what to do, and is notified of the results.
type containerInstance struct {
	launcher         *contained
	spec             domain.MemberSpec
	member, id, name string
	// folder has what is created for the instance.
	folder string

	// runs is closed once the command runs and, if there is a health check, is healthy; over is closed at its end, with
	// the outcome set.
	runs, over chan struct{}
	outcome    result
	waiting    atomic.Value // string

	// asked is closed when the loop wants the instance to end, and forced when that has taken too long.
	asked, forced     chan struct{}
	askOnce, killOnce sync.Once
	// news has an event of the Engine about the container.
	news chan struct{}

	// The fields below belong to the goroutine.

	// ran is set once the container was seen running, last in the session after this many breaks, and away is set if
	// the Engine has not answered since.
	ran, away bool
	breaks    int
	// signalled is set once the container was sent its stop signal.
	signalled bool
	// sick is the output of the failed health check, and killAt is when the container is killed because of it; zero
	// before.
	sick   string
	killAt time.Time
	log    *logCopy
	// starved reports at the end whether memory ran out; nil if that is not watched.
	starved *starvation
	// begun is set if this supervisor started the container.
	begun bool
}

func (i *containerInstance) process() proctree.Process { return proctree.Process{} }
func (i *containerInstance) started() <-chan struct{}  { return i.runs }
func (i *containerInstance) ended() <-chan struct{}    { return i.over }
func (i *containerInstance) clear() (bool, error)      { return true, nil }
func (i *containerInstance) result() result            { return i.outcome }
func (i *containerInstance) delete()                   { i.launcher.remove(i) }

func (i *containerInstance) waits() string {
	text, _ := i.waiting.Load().(string)
	return text
}

func (i *containerInstance) terminate(now, killAt time.Time) (next time.Time, err error) {
	i.askOnce.Do(func() { close(i.asked) })
	if killAt.After(now) {
		return killAt, nil
	}
	i.killOnce.Do(func() { close(i.forced) })
	return now.Add(tick), nil
}

// look requests an inspection of the container.
func (i *containerInstance) look() {
	select {
	case i.news <- struct{}{}:
	default: // one is pending already
	}
}

// live follows an instance from its beginning, or from its current state if begin is nil, to its end.
func (i *containerInstance) live(begin func() error) {
	defer close(i.over)
	if begin != nil {
		if err := begin(); err != nil {
			i.outcome = result{unstarted: err}
			return
		}
	}
	if i.outcome = i.follow(); i.outcome.unstarted != nil {
		return
	}
	if i.log == nil { // it ended before its adoption
		i.log = continueLogCopy(i.launcher.dir, i.member)
	}
	i.log.finish(i)
}

// begin creates and starts the container.
func (i *containerInstance) begin() error {
	engine := i.launcher.engine
	ctx, cancel := context.WithCancel(i.launcher.done)
	defer cancel()
	go func() {
		select {
		case <-i.asked:
			cancel()
		case <-ctx.Done():
		}
	}()
	facts, err := i.launcher.await(ctx)
	if err == nil {
		err = i.provideImage(ctx)
	}
	if err == nil {
		i.waiting.Store("its container is starting")
		select {
		case i.launcher.slots <- struct{}{}:
			defer func() { <-i.launcher.slots }()
		case <-ctx.Done():
		}
	}
	if isClosed(i.asked) {
		return errNeverStarted
	}
	if err != nil {
		return refusedAsFault(err)
	}
	// From here on it is not interrupted, so that it is known what exists.
	place, err := i.prepare(facts)
	if err != nil {
		return err
	}
	if i.log, err = newLogCopy(i.launcher.dir, i.member); err != nil {
		return err
	}
	if err := engine.Create(i.launcher.done, i.spec, place); err != nil {
		return refusedAsFault(err)
	}
	if isClosed(i.asked) {
		return errNeverStarted
	}
	i.begun = true
	if err := engine.Start(i.launcher.done, i.name); err != nil && !errors.Is(err, containers.ErrAway) {
		return refusedAsFault(err)
	}
	return nil // otherwise the inspection shows whether it was started
}

// refusedAsFault turns what the Engine refuses into the member's own fault.
func refusedAsFault(err error) error {
	if _, refused := errors.AsType[*containers.RefusedError](err); refused {
		return &commandError{err}
	}
	return err
}

// provideImage pulls the image, according to the member's policy.
func (i *containerInstance) provideImage(ctx context.Context) error {
	engine, image := i.launcher.engine, i.spec.Image
	pulls, err := engine.Pulls(ctx, image, i.spec.Container.PullPolicy)
	if err != nil || !pulls {
		return err
	}
	login, err := i.launcher.dir.ReadRegistryLogin(i.spec)
	if err != nil {
		return err
	}
	i.waiting.Store(fmt.Sprintf("pulling image %q", image))
	return engine.Pull(ctx, image, login)
}

// follow returns how the instance ended.
func (i *containerInstance) follow() result {
	for {
		session, changed := i.launcher.state()
		found, err := i.launcher.engine.Inspect(i.launcher.done, i.name)
		now, _ := i.launcher.state()
		switch {
		case errors.Is(err, containers.ErrGone) && !i.ran && !isClosed(i.runs):
			return result{unstarted: errNeverStarted}
		case errors.Is(err, containers.ErrGone):
			return result{code: lostExitCode, lost: "its container is gone"}
		case err != nil:
			i.away = true // nothing is known
		case found.Ended:
			return i.end(found, now)
		case !found.Running:
			return result{unstarted: cmp.Or(fault(found), errNeverStarted)}
		default:
			i.ran, i.away, i.breaks = true, false, session.breaks
			if err = i.attend(found); err != nil {
				i.launcher.log.Error("can't manage a container; retrying", "container", i.name, "error", err)
			}
		}
		i.wait(changed, err)
	}
}

// fault returns why a container could not be started, if that is known.
func fault(found containers.Container) error {
	if found.Trouble == "" {
		return nil
	}
	return &commandError{&containers.RefusedError{Code: cmp.Or(found.ExitCode, lostExitCode), Reason: found.Trouble}}
}

// attend does what a running container currently needs.
func (i *containerInstance) attend(found containers.Container) error {
	engine := i.launcher.engine
	if i.log == nil {
		i.log = continueLogCopy(i.launcher.dir, i.member)
	}
	i.log.follow(i)
	if i.starved == nil {
		i.starved = watchMemory(i.launcher.done, found.PID)
	}
	switch {
	case found.Health == containers.Unhealthy && i.killAt.IsZero():
		i.sick, i.killAt = cmp.Or(found.Said, "no output"), time.Now().Add(time.Duration(i.spec.GracePeriod))
	case found.Health == containers.Starting:
		i.waiting.Store("its health check has not passed yet")
	case found.Health != containers.Unhealthy && !isClosed(i.runs):
		close(i.runs)
	}
	if isClosed(i.forced) || !i.killAt.IsZero() && !i.killAt.After(time.Now()) {
		return engine.Signal(i.launcher.done, i.name, "SIGKILL")
	}
	if !isClosed(i.asked) && i.killAt.IsZero() {
		return nil
	}
	if found.Paused { // even if its Engine notices that late
		if err := engine.Continue(i.launcher.done, i.name); err != nil {
			return err
		}
	}
	if i.signalled {
		return nil
	}
	if isClosed(i.asked) {
		// A successor must know that the end was requested.
		if err := os.WriteFile(i.askedFile(), nil, 0o600); err != nil {
			return err
		}
	}
	err := engine.Signal(i.launcher.done, i.name, cmp.Or(found.StopSignal, "SIGTERM"))
	i.signalled = err == nil
	return err
}

func (i *containerInstance) askedFile() string { return filepath.Join(i.folder, "asked") }

// wait returns when the container should be inspected again.
func (i *containerInstance) wait(changed <-chan struct{}, failed error) {
	again := lookAtAllAfter
	asked, forced := i.asked, i.forced
	if isClosed(asked) {
		asked = nil
	}
	if isClosed(forced) {
		forced = nil
	}
	if failed != nil || forced == nil || i.log != nil && i.log.broken() {
		again = tick
	}
	if !i.killAt.IsZero() {
		again = min(again, max(time.Until(i.killAt), sweep))
	}
	timer := time.NewTimer(again)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-i.news:
	case <-changed:
	case <-asked:
	case <-forced:
	case <-i.launcher.done.Done():
		select {} // the successor takes over
	}
}

// end returns the result of a container that was found ended, in a session.
func (i *containerInstance) end(found containers.Container, now session) result {
	r := result{code: found.ExitCode}
	if _, err := os.Stat(i.askedFile()); err == nil {
		r.asked = true
	}
	switch {
	case i.sick != "":
		if r.code == 0 {
			r.code = 1
		}
		r.note = "its health check failed: " + i.sick
	case i.endedWithEngine(found, now):
		r.interrupted = "the Docker Engine was restarted"
	case !i.starved.happened() && !found.OutOfMemory && !i.killedUnwatched(found):
	default:
		r.outOfMemory(i.spec.Resources.Limits.MemoryMiB, i.starved == nil || !i.starved.neverFull)
	}
	return r
}

// killedUnwatched reports whether only its memory limit can have killed a container: it was killed before its memory
// was watched, and nobody asked for its end. Engines miss some of the kernel's kills.
func (i *containerInstance) killedUnwatched(found containers.Container) bool {
	killed := found.ExitCode == lostExitCode && !isClosed(i.asked) && !isClosed(i.forced)
	return killed && i.begun && i.starved == nil && i.spec.Resources.Limits.MemoryMiB > 0
}

// endedWithEngine reports whether a container ended because its Engine did: one that exits cleanly when it is told to
// end would look completed otherwise.
func (i *containerInstance) endedWithEngine(found containers.Container, now session) bool {
	if now.facts.Survive {
		return false
	}
	breaks := 0
	if i.ran {
		breaks = now.breaks - i.breaks
	}
	from, until, err := i.launcher.engineStopped(now.breaks)
	if err == nil && !from.IsZero() && breaks <= 1 {
		return endedBetween(found.FinishedAt, from, until)
	}
	return breaks > 0 || i.away // it ended meanwhile
}

// notedLate is how much later than its signal systemd may note that a service stops: on a busy host, a container can
// end in between.
const notedLate = 500 * time.Millisecond

// endedBetween reports whether a container ended from the stop of its Engine, as systemd noted it, until that was back.
func endedBetween(ended, from, until time.Time) bool {
	return !ended.Before(from.Add(-notedLate)) && !ended.After(until)
}
