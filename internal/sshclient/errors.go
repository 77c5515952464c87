package sshclient

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"syscall"
	"time"

	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
)

// Reasons why a host can't be reached, wrapped by the errors of calls. All but a timeout are [engine.ErrRefused].
var (
	// ErrHostKeyUnknown is for a host that is in no known_hosts file.
	ErrHostKeyUnknown = fmt.Errorf("%w: host key unknown", engine.ErrRefused)
	// ErrHostKeyChanged is for a host whose key differs from the one in the known_hosts files.
	ErrHostKeyChanged = fmt.Errorf("%w: host key changed", engine.ErrRefused)
	// ErrHostKeyRevoked is for a host whose key is marked @revoked in a known_hosts file.
	ErrHostKeyRevoked = fmt.Errorf("%w: host key revoked", engine.ErrRefused)
	// ErrPermissionDenied is for a host that accepts none of our keys, and for something that we may not open.
	ErrPermissionDenied = fmt.Errorf("%w: permission denied", engine.ErrRefused)
	// ErrTimeout is for a host that doesn't answer within the time limit for connecting.
	ErrTimeout = errors.New("no answer in time")
)

// Failure is why a host, or something on it, can't be reached. The Docker client replaces timeouts, and errors with the
// text "connection refused" or "dial unix"; so the text is always ours, and there is no method Timeout.
type Failure struct {
	Text  string
	Kind  error // an exported error of this package or of one that builds on it; nil for none
	Cause error // nil if the text covers it

	address string // set by At
}

// Failed returns a failure of a kind, which may be nil.
func Failed(kind error, format string, args ...any) *Failure {
	return &Failure{Text: fmt.Sprintf(format, args...), Kind: kind}
}

// Error returns the address, what is wrong and what to do.
func (f *Failure) Error() string {
	if f.address == "" {
		return f.Text
	}
	return f.address + ": " + f.Text
}

// Unwrap returns the kind and the cause, if there are any.
func (f *Failure) Unwrap() []error {
	return slices.DeleteFunc([]error{f.Kind, f.Cause}, func(err error) bool { return err == nil })
}

// At returns a failure with its address replaced by this one. Other errors are returned unchanged: those of a context
// have nothing to do with the address.
func At(address string, err error) error {
	f, ok := errors.AsType[*Failure](err)
	if !ok {
		return err
	}
	named := *f
	named.address = address
	return &named
}

// Outcome returns the cause of the context's end if it has ended, else what otherwise returns, to explain why a step
// failed.
func Outcome(ctx context.Context, otherwise func() error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return otherwise()
}

// UsualLimit is the default limit for a step of connecting, the same as in Docker's own client.
const UsualLimit = 30 * time.Second

// Within returns a context for one step of connecting, which ends with a timeout [Failure] after the limit; 0 means 30
// s.
func Within(ctx context.Context, limit time.Duration) (context.Context, context.CancelFunc) {
	limit = limitOr(limit)
	return context.WithTimeoutCause(ctx, limit, Failed(ErrTimeout, noAnswer, limit))
}

// Pipe is the network of Windows' named pipes, for [NetDial].
const Pipe = "npipe"

// NetDial connects to an address on this machine's network or in its file system, or to a [Pipe]. An error is a
// [Failure], or that of the context.
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

// connectFailure explains why there is no connection to an address: a host and port, or the path of a socket or pipe.
func connectFailure(address string, err error) *Failure {
	var errno syscall.Errno
	var unresolved *net.DNSError
	switch {
	case errors.Is(err, syscall.ECONNREFUSED):
		return &Failure{
			Text: fmt.Sprintf("%s refuses connections: nothing listens there; check the address, and that the "+
				"service runs",
				address),
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
