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

// launcher starts the instances of members, and finds again those that a predecessor started.
type launcher interface {
	// turn begins a turn of the loop: what was read of the machine in the one before is out of date.
	turn()
	// start starts a member's command; its processes carry the id as their mark. An error about the command itself is a
	// *commandError. After [errUncertain] the instance may run, and has to be looked for.
	start(spec domain.MemberSpec, id string) (instance, error)
	// adopt returns the instance that a member's state names, and completes the state by what identifies it. An error
	// other than [errNeverStarted] and [errUnwatched] says nothing about the instance.
	adopt(state *statedir.State, spec domain.MemberSpec) (instance, error)
	// find makes up the state of a member that has none from what runs; its instance is empty where nothing does.
	find(member string) (statedir.State, error)
	// contained reports whether members of a specification run as containers.
	contained(spec domain.MemberSpec) bool
	// gone reports whether nothing is left of the instances of a member that have ended, or nothing that can be removed
	// now.
	gone(member string) bool
}

// instance is one run of a member's command.
type instance interface {
	// process identifies the instance in the member's state; it is the zero process where the instance's name does.
	process() proctree.Process
	// started is closed once the command runs. Until then waits says what for.
	started() <-chan struct{}
	waits() string
	// ended is closed when the command has ended.
	ended() <-chan struct{}
	// terminate asks the instance to end, and ends it by force once the time has come. It returns when to come again.
	terminate(now, killAt time.Time) (next time.Time, err error)
	// clear kills what the command that has ended left running. It returns true when nothing is left.
	clear() (bool, error)
	// result tells how the instance ended.
	result() result
	// delete deletes what was made for the instance.
	delete()
}

// resizable are instances whose limits can be changed while they run: memory only to more.
type resizable interface {
	resize(limits domain.Resources) error
}

// atOnce are instances that run when their launcher returns them.
type atOnce struct{}

func (atOnce) started() <-chan struct{} { return closed }
func (atOnce) waits() string            { return "" }

// closed is the end of what has ended before anybody could watch it.
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
	// unstarted is why it never ran, as an error of a launcher's start; nil where it did.
	unstarted error
	code      int
	// lost says why the code is not known; it is empty where it is.
	lost string
	// note is what else there is to say of a failure, such as that memory was short.
	note string
	// outOf is the limit in MiB that the instance exceeded; 0 where it is known of none.
	outOf int64
	// asked is true where somebody is known to have asked the instance to end. settled is true where nobody is known to
	// have: then a restart of the machine has nothing to do with the end.
	asked, settled bool
	// interrupted says what ended the instance that nobody meant to end; empty where nothing is known to have.
	interrupted string
}

// run is the present instance of a member, and how it is to end.
type run struct {
	instance
	restart domain.RestartRule
	grace   time.Duration
	// killAt is when the grace period ends; zero until the instance was asked to end.
	killAt time.Time
	exited bool
	// waited is true where it did not run when it was returned.
	waited bool
}

func newInstanceID() string { return rand.Text() }

func newRun(i instance, spec domain.MemberSpec) *run {
	return &run{instance: i, restart: spec.Restart, grace: time.Duration(spec.GracePeriod)}
}

// asked reports whether the instance was asked to end.
func (r *run) asked() bool { return !r.killAt.IsZero() }

// end asks the instance to end, and sees to it. It returns when to come again.
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
	errUncertain = errors.New("it may have been started or not")
	// errUnwatched means that an instance runs whose end can't be told.
	errUnwatched = errors.New("it can't be watched")
)
