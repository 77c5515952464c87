//go:build linux

package supervisor

import (
	"crypto/rand"
	"errors"
	"time"

	"github.com/trainyard/terraform-provider-trainyard/internal/agent/proctree"
	"github.com/trainyard/terraform-provider-trainyard/internal/agent/statedir"
	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
)

// launcher starts the instances of members, and finds those that a predecessor started.
type launcher interface {
	// turn begins a turn of the loop: what was read of the machine in the previous one is out of date.
	turn()
	// start starts a member's command; its processes carry the ID as their mark. An error about the command itself is a
	// *commandError. After [errUncertain] the instance may run, and has to be looked for.
	start(spec domain.MemberSpec, id string) (instance, error)
	// adopt returns the instance in a member's state, and adds to the state what identifies it. An error other than
	// [errNeverStarted] and [errUnwatched] says nothing about the instance.
	adopt(state *statedir.State, spec domain.MemberSpec) (instance, error)
	// find derives the state of a member without one from what runs; its instance is empty if nothing does.
	find(member string) (statedir.State, error)
	// contained reports whether members of a specification run as containers.
	contained(spec domain.MemberSpec) bool
	// gone reports whether nothing is left of a member's ended instances, or nothing that can be removed now.
	gone(member string) bool
}

// instance is one run of a member's command.
type instance interface {
	// process identifies the instance in the member's state; it is the zero process if the instance's name does.
	process() proctree.Process
	// started is closed once the command runs. Until then, waits says what it waits for.
	started() <-chan struct{}
	waits() string
	// ended is closed when the command has ended.
	ended() <-chan struct{}
	// terminate asks the instance to end, and kills it after killAt. It returns when to call it again.
	terminate(now, killAt time.Time) (next time.Time, err error)
	// clear kills what an ended command has left running. It returns true when nothing is left.
	clear() (bool, error)
	// result returns how the instance ended.
	result() result
	// delete deletes what was created for the instance.
	delete()
}

// resizable are instances whose limits can be changed while they run; memory can only be raised.
type resizable interface {
	resize(limits domain.Resources) error
}

// atOnce are instances that run as soon as their launcher returns them.
type atOnce struct{}

func (atOnce) started() <-chan struct{} { return closed }
func (atOnce) waits() string            { return "" }

// closed is the end of an instance that ended before anybody could watch it.
var closed = func() <-chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}()

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// result is how an instance ended.
type result struct {
	// unstarted is the error of a launcher's start if it never ran; otherwise nil.
	unstarted error
	code      int
	// lost is why the code is unknown; empty if it is known.
	lost string
	// note is an addition to the reason of a failure, such as that memory ran out.
	note string
	// outOf is the memory limit in MiB that the instance exceeded; 0 if it exceeded none.
	outOf int64
	// asked is set if the instance is known to have been asked to end. settled is set if it ended by itself, so that a
	// reboot of the machine has nothing to do with the end.
	asked, settled bool
	// interrupted is why an instance ended that nobody asked to end; empty if unknown.
	interrupted string
}

// run is the current instance of a member, and how it is to end.
type run struct {
	instance
	restart domain.RestartRule
	grace   time.Duration
	// killAt is when the grace period ends; zero until the instance was asked to end.
	killAt time.Time
	exited bool
	// waited is set if it did not run yet when it was returned.
	waited bool
}

func newInstanceID() string { return rand.Text() }

func newRun(i instance, spec domain.MemberSpec) *run {
	return &run{instance: i, restart: spec.Restart, grace: time.Duration(spec.GracePeriod)}
}

// asked reports whether the instance was asked to end.
func (r *run) asked() bool { return !r.killAt.IsZero() }

// end asks the instance to end, and kills it after the grace period. It returns when to call it again.
func (r *run) end(now time.Time) (next time.Time, err error) {
	killAt := r.killAt
	if !r.asked() {
		killAt = now.Add(r.grace)
	}
	if next, err = r.terminate(now, killAt); err == nil {
		r.killAt = killAt
	}
	return next, err
}

// commandError is an error about the command that a member should run, as opposed to one about the machine.
type commandError struct{ error }

func (e *commandError) Unwrap() error { return e.error }

var (
	// errNeverStarted means that an instance never ran.
	errNeverStarted = errors.New("it was never started")
	// errUncertain means that nobody knows whether an instance was started.
	errUncertain = errors.New("it may or may not have been started")
	// errUnwatched means that an instance runs whose end can't be detected.
	errUnwatched = errors.New("it can't be watched")
)
