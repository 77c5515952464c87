package sshclient

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"syscall"
	"time"
)

// Why a host can't be reached. Errors of calls wrap these.
var (
	// ErrHostKeyUnknown is for a host that no known_hosts file mentions.
	ErrHostKeyUnknown = errors.New("host key unknown")
	// ErrHostKeyChanged is for a host that presents another key than the known_hosts files have for it.
	ErrHostKeyChanged = errors.New("host key changed")
	// ErrHostKeyRevoked is for a host whose key is marked @revoked in a known_hosts file.
	ErrHostKeyRevoked = errors.New("host key revoked")
	// ErrPermissionDenied is for a host that accepts none of our keys, and for what we may not open.
	ErrPermissionDenied = errors.New("permission denied")
	// ErrTimeout is for a host that doesn't answer within the time that there is to connect.
	ErrTimeout = errors.New("no answer in time")
)

// Failure is why a host, or what is there, can't be reached. The Docker client replaces errors that say "connection
// refused" or "dial unix", and timeouts: so the text is all ours, and Failure has no method Timeout.
type Failure struct {
	Text  string
	Kind  error // one of the exported errors, of this package or of what builds on it; nil for none
	Cause error // nil where the text has all of it

	address string // set by At
}

// Failed returns a failure of a kind, nil for none.
func Failed(kind error, format string, args ...any) *Failure {
	return &Failure{Text: fmt.Sprintf(format, args...), Kind: kind}
}

// Error names the address, what is wrong and what to do.
func (f *Failure) Error() string {
	if f.address == "" {
		return f.Text
	}
	return f.address + ": " + f.Text
}

// Unwrap returns the kind and the cause, as far as there are such.
func (f *Failure) Unwrap() []error {
	return slices.DeleteFunc([]error{f.Kind, f.Cause}, func(err error) bool { return err == nil })
}

// At returns a failure that names this address, in the place of one that it may name. Other errors stay as they are:
// those of a context say nothing of the address.
func At(address string, err error) error {
	f, ok := errors.AsType[*Failure](err)
	if !ok {
		return err
	}
	named := *f
	named.address = address
	return &named
}

// Outcome returns what a step that failed under a context means: the context's end where it has ended, else what
// otherwise returns.
func Outcome(ctx context.Context, otherwise func() error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return otherwise()
}

// UsualLimit is how long a step of connecting may take where nothing else is said: as for Docker's own client.
const UsualLimit = 30 * time.Second

// Within returns a context that ends with a failure of its own after a time for one step of connecting, 30 s where that
// is 0.
func Within(ctx context.Context, limit time.Duration) (context.Context, context.CancelFunc) {
	limit = limitOr(limit)
	return context.WithTimeoutCause(ctx, limit, Failed(ErrTimeout, noAnswer, limit))
}

// Pipe is the network of Windows' named pipes, for [NetDial].
const Pipe = "npipe"

// NetDial connects to an address of this machine's network or file system, or to a [Pipe]. Its errors are a [Failure],
// or the context's.
func NetDial(ctx context.Context, network, address string) (net.Conn, error) {
	dial := new(net.Dialer).DialContext
	if network == Pipe {
		dial = dialPipe
	}
	conn, err := dial(ctx, network, address)
	if err != nil {
		return nil, Outcome(ctx, func() error { return connectFailure(address, err) })
	}
	return conn, nil
}

// connectFailure says why there is no connection to an address, which is a host and port or the path of a socket or
// pipe.
func connectFailure(address string, err error) *Failure {
	var errno syscall.Errno
	var unresolved *net.DNSError
	switch {
	case errors.Is(err, syscall.ECONNREFUSED):
		return &Failure{
			Text:  fmt.Sprintf("%s refuses connections: nothing listens there; check the address, and that the service runs", address),
			Cause: syscall.ECONNREFUSED,
		}
	case errors.As(err, &unresolved):
		return Failed(nil, "host name %q can't be resolved: %s", unresolved.Name, unresolved.Err)
	case errors.As(err, &errno):
		return &Failure{Text: fmt.Sprintf("%s can't be reached: %s", address, errno), Cause: errno}
	}
	if op, ok := errors.AsType[*net.OpError](err); ok {
		err = op.Err
	}
	return Failed(nil, "%s can't be reached: %s", address, err)
}
