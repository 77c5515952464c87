package engine

import (
	"errors"
	"fmt"
	"time"
)

var (
	// ErrNotFound is returned for what definitely is not there. Any other error leaves that open.
	ErrNotFound = errors.New("not found")
	// ErrConflict is returned for a write on top of a revision that is no longer the stored one.
	ErrConflict = errors.New("changed by someone else in the meantime")
	// ErrNotFormed is wrapped by the errors of calls that reached hosts which are no cluster yet. That is not
	// [ErrNotFound]: it may be the wrong hosts.
	ErrNotFormed = errors.New("not a cluster")
	// ErrUnreachable is wrapped by the errors of calls that did not get through to what runs the members.
	ErrUnreachable = errors.New("can't be reached")
	// ErrLockLost is wrapped by the error of the release of a lock that was not its holder's all the time.
	ErrLockLost = errors.New("it was not held all the time: another run may have changed the same objects; plan again")
	// ErrLockUnreleased is wrapped by the error of the release of a lock that its holder had all the time, where
	// nothing carries the release out. Nobody renews the lock any more, and so it ends by itself.
	ErrLockUnreleased = errors.New("it can't be released, and ends by itself")
	// ErrUnwell is wrapped by the errors of calls to what runs the members that it could not answer for a reason of its
	// own.
	ErrUnwell = errors.New("answers with an error of its own")
)

// LockedError is returned for a lock that somebody else holds.
type LockedError struct {
	Lock   string
	Holder Holder
	// Unsure says that the holder may be dead: asked again, the engine will find out.
	Unsure bool
}

// Error names the lock and its holder.
func (e *LockedError) Error() string {
	return fmt.Sprintf("%s is locked by %s (process %d): %s, since %s",
		e.Lock, e.Holder.Who, e.Holder.Process, e.Holder.Operation, e.Holder.Since.Local().Format(time.DateTime))
}

// CorruptError is returned for a stored document that can't be read as one.
type CorruptError struct {
	// Where is the file or object that holds the document.
	Where string
	Err   error
}

// Error names the document's place and the fault.
func (e *CorruptError) Error() string {
	return fmt.Sprintf("%s is corrupt: %v; nothing was changed: restore it from a backup, or move it away to have it written anew", e.Where, e.Err)
}

// Unwrap returns the fault itself.
func (e *CorruptError) Unwrap() error { return e.Err }

// ElsewhereError is returned where an engine is led to something else than what it was led to before. What is not found
// there may well be where it was.
type ElsewhereError struct {
	// Where is what was found, and Expected is what was to be, in words.
	Where, Expected string
}

// Error names both.
func (e *ElsewhereError) Error() string {
	return fmt.Sprintf("this is %s, not %s", e.Where, e.Expected)
}
