package engine

import (
	"errors"
	"fmt"
	"time"
)

var (
	// ErrNotFound is returned for what definitely does not exist. Any other error leaves that open.
	ErrNotFound = errors.New("not found")
	// ErrConflict is returned for a write based on a revision that is no longer the stored one.
	ErrConflict = errors.New("changed by someone else in the meantime")
	// ErrNotFormed is wrapped by the errors of calls that reached hosts which are not a cluster yet. That is not
	// [ErrNotFound]: they may be the wrong hosts.
	ErrNotFormed = errors.New("not a cluster")
	// ErrUnreachable is wrapped by the errors of calls that could not reach what runs the members.
	ErrUnreachable = errors.New("can't be reached")
	// ErrRefused is wrapped by the errors of calls that failed because a host and we don't accept each other, for lack
	// of a right or a key. It doesn't pass by itself.
	ErrRefused = errors.New("refused")
	// ErrLockLost is wrapped by the release error of a lock that its holder did not have the whole time.
	ErrLockLost = errors.New("it was not held throughout: another run may have changed the same objects; plan again")
	// ErrLockUnreleased is wrapped by the release error of a lock that its holder had the whole time, if nothing could
	// carry out the release. Nobody renews the lock any more, so it expires.
	ErrLockUnreleased = errors.New("not released; it expires by itself")
	// ErrUnwell is wrapped by the errors of calls that reached what runs the members, which failed for a reason of its
	// own.
	ErrUnwell = errors.New("reports an error")
)

// LockedError is returned for a lock that somebody else holds.
type LockedError struct {
	Lock   string
	Holder Holder
	// Unsure is set if the holder may be dead: asked again, the engine will find out.
	Unsure bool
}

// Error names the lock and its holder, as far as it is known.
func (e *LockedError) Error() string {
	if e.Holder.Operation == "" {
		return fmt.Sprintf("%s is locked by %s", e.Lock, e.Holder.Who)
	}
	return fmt.Sprintf("%s is locked by %s (process %d): %s, since %s",
		e.Lock, e.Holder.Who, e.Holder.Process, e.Holder.Operation, e.Holder.Since.Local().Format(time.DateTime))
}

// CorruptError is returned for a stored document that can't be read.
type CorruptError struct {
	// Where is the file or object that holds the document.
	Where string
	Err   error
}

// Error names the document's location and the fault.
func (e *CorruptError) Error() string {
	return fmt.Sprintf(
		"%s is corrupt: %v; nothing was changed: restore it from a backup, or move it away to have it written anew",
		e.Where, e.Err,
	)
}

// Unwrap returns the fault.
func (e *CorruptError) Unwrap() error { return e.Err }

// ElsewhereError is returned if an engine's endpoint leads somewhere else than before. What is not found there may
// still exist at the earlier place.
type ElsewhereError struct {
	// Where describes what was found, and Expected what was expected.
	Where, Expected string
}

// Error names both.
func (e *ElsewhereError) Error() string {
	return fmt.Sprintf("this is %s, not %s", e.Where, e.Expected)
}
