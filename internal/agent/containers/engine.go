//go:build linux

// Package containers runs instances of members as containers of this host's own Docker Engine. It is the only package
// on a host that talks to Docker.
package containers

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"time"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/docker/docker/client"
)

// Socket is the Docker Engine's socket.
const Socket = "/run/docker.sock"

var (
	// ErrAway means that no Engine answers on this host; the outcome of a request in flight is unknown.
	ErrAway = errors.New("the Docker Engine of this host doesn't answer")
	// ErrGone is returned for a container that does not exist.
	ErrGone = errors.New("no such container")
)

// RefusedError is the Engine's refusal of a request.
type RefusedError struct {
	// Code is the matching exit code, as "docker run" returns it: 125, or 126 or 127 if the command can't be executed
	// or isn't there.
	Code int
	// Reason is the Engine's message.
	Reason string
}

// Error returns the reason.
func (e *RefusedError) Error() string { return "the Docker Engine says: " + e.Reason }

// refusedCode is the exit code for a request that the Engine refuses.
const refusedCode = 125

// Engine is the Docker Engine of this host.
type Engine struct {
	socket string
	client *client.Client
}

// Open returns the Engine at a socket, without contacting it.
func Open(socket string) (*Engine, error) {
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", socket)
	}
	c, err := client.NewClientWithOpts(
		client.WithHost("unix://"+socket), client.WithAPIVersionNegotiation(),
		// One connection per request: this way the Engine that is listening answers, not one that is shutting down.
		client.WithHTTPClient(&http.Client{Transport: &http.Transport{DialContext: dial, DisableKeepAlives: true}}),
	)
	if err != nil {
		return nil, err
	}
	return &Engine{socket: socket, client: c}, nil
}

// patience is how long an Engine may take to answer a request that involves no work.
const patience = 15 * time.Second

// ask sends the Engine a request that it has to answer within patience.
func (e *Engine) ask(ctx context.Context, question func(ctx context.Context) error) error {
	bounded, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	err := e.explain(question(bounded))
	if err != nil && bounded.Err() != nil && ctx.Err() == nil {
		return fmt.Errorf("%w within %s", ErrAway, patience)
	}
	return err
}

// answers recognize the errors that the Engine itself returned.
var answers = []func(error) bool{
	cerrdefs.IsInvalidArgument, cerrdefs.IsConflict, cerrdefs.IsUnauthorized, cerrdefs.IsPermissionDenied,
	cerrdefs.IsInternal,
	cerrdefs.IsNotImplemented, cerrdefs.IsUnavailable, cerrdefs.IsUnknown, cerrdefs.IsNotFound,
}

// explain translates an error of the client.
func (e *Engine) explain(err error) error {
	switch {
	case err == nil:
		return nil
	case client.IsErrConnectionFailed(err):
		// The client hides the cause.
		if connection, failed := net.Dial("unix", e.socket); failed != nil { //nolint:noctx // a local socket answers at once
			err = failed
		} else {
			_ = connection.Close()
		}
		return fmt.Errorf("%w: %w", ErrAway, err)
	case cerrdefs.IsNotFound(err) && strings.Contains(err.Error(), "No such container"):
		return fmt.Errorf("%w: %w", ErrGone, err)
	}
	for _, is := range answers {
		if is(err) {
			return &RefusedError{
				Code: refusedCode, Reason: reason(strings.TrimPrefix(err.Error(), "Error response from daemon: ")),
			}
		}
	}
	return fmt.Errorf("%w: %w", ErrAway, err)
}

// reason returns the Engine's message, with an explanation where it is obscure: for a file system that the kernel
// doesn't support, the Engine passes on the kernel's error.
func reason(message string) string {
	if strings.Contains(message, "failed to mount local volume: ") && strings.HasSuffix(message, ": no such device") {
		message += `; this host's kernel doesn't support the file system given as "type" in the volume's driver options. ` +
			"For NFS: sudo modprobe nfs"
	}
	return message
}

// Facts are properties of an Engine.
type Facts struct {
	// Systemd is true if systemd manages its cgroups.
	Systemd bool
	// Survive is true if containers keep running while the Engine restarts (live restore).
	Survive bool
}

// Facts returns the Engine's properties.
func (e *Engine) Facts(ctx context.Context) (facts Facts, err error) {
	err = e.ask(ctx, func(ctx context.Context) error {
		info, err := e.client.Info(ctx)
		facts = Facts{Systemd: info.CgroupDriver == "systemd", Survive: info.LiveRestoreEnabled}
		return err
	})
	return facts, err
}
