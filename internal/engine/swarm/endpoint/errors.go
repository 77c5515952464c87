package endpoint

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"slices"
	"syscall"
	"time"
)

// Why an engine can't be reached. Errors of calls wrap these.
var (
	// ErrHostKeyUnknown is for a host that no known_hosts file mentions.
	ErrHostKeyUnknown = errors.New("host key unknown")
	// ErrHostKeyChanged is for a host that presents another key than the known_hosts files have for it.
	ErrHostKeyChanged = errors.New("host key changed")
	// ErrHostKeyRevoked is for a host whose key is marked @revoked in a known_hosts file.
	ErrHostKeyRevoked = errors.New("host key revoked")
	// ErrPermissionDenied is for a host that accepts none of our keys, and for a socket that we may not open.
	ErrPermissionDenied = errors.New("permission denied")
	// ErrNoSocket is for a host on which no engine listens at the given path, as far as can be told: OpenSSH gives
	// the same answer where the user may not open the socket.
	ErrNoSocket = errors.New("no socket")
	// ErrTimeout is for a host that doesn't answer within [Credentials.DialTimeout].
	ErrTimeout = errors.New("no answer in time")
)

// failure is why an engine can't be reached. The Docker client replaces errors that say "connection refused" or "dial
// unix", and those that are timeouts, by one without a reason. So the text is all ours, and failure
// has no method Timeout.
type failure struct {
	endpoint string // set by at
	text     string
	kind     error // one of the exported errors, or nil
	cause    error // nil where the text has all of it
}

// Error names the endpoint, what is wrong and what to do.
func (f *failure) Error() string {
	if f.endpoint == "" {
		return f.text
	}
	return f.endpoint + ": " + f.text
}

// Unwrap returns the kind and the cause, as far as there are such.
func (f *failure) Unwrap() []error {
	return slices.DeleteFunc([]error{f.kind, f.cause}, func(err error) bool { return err == nil })
}

// failed returns a failure of a kind.
func failed(kind error, format string, args ...any) *failure {
	return &failure{text: fmt.Sprintf(format, args...), kind: kind}
}

// at returns an error that names the endpoint. Errors of a context stay as they are: they say nothing of the endpoint.
func (e Endpoint) at(err error) error {
	var f *failure
	if !errors.As(err, &f) {
		return err
	}
	named := *f
	named.endpoint = e.String()
	return &named
}

// outcome returns what a step that failed under a context means: the context's end where it has ended, else what
// otherwise returns.
func outcome(ctx context.Context, otherwise func() error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return otherwise()
}

// within returns a context that ends with a failure of its own after a time.
func within(ctx context.Context, limit time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, limit, failed(ErrTimeout,
		"no answer within %s; check the address, the network and firewalls in between", limit))
}

// connectFailure says why there is no connection to an address, which is a host and port or the path of a socket.
func connectFailure(address string, err error) *failure {
	var errno syscall.Errno
	var unresolved *net.DNSError
	switch {
	case errors.Is(err, syscall.ECONNREFUSED):
		return &failure{
			text:  fmt.Sprintf("%s refuses connections: nothing listens there; check the address, and that the service runs", address),
			cause: syscall.ECONNREFUSED,
		}
	case errors.As(err, &unresolved):
		return &failure{text: fmt.Sprintf("host name %q can't be resolved: %s", unresolved.Name, unresolved.Err)}
	case errors.Is(err, fs.ErrNotExist):
		return failed(ErrNoSocket, "there is no socket %s; check the path, and that Docker runs there", address)
	case errors.Is(err, fs.ErrPermission):
		return failed(ErrPermissionDenied, "this user may not open %s; add it to the group that owns the socket, usually docker", address)
	case errors.As(err, &errno):
		return &failure{text: fmt.Sprintf("%s can't be reached: %s", address, errno), cause: errno}
	}
	if op, ok := errors.AsType[*net.OpError](err); ok {
		err = op.Err
	}
	return &failure{text: fmt.Sprintf("%s can't be reached: %s", address, err)}
}
