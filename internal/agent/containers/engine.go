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

// Socket is where an Engine answers.
const Socket = "/run/docker.sock"

var (
	// ErrAway means that no Engine answers on this host: nobody knows what became of a request that was on its way.
	ErrAway = errors.New("the Docker Engine of this host doesn't answer")
	// ErrGone is returned for a container that does not exist.
	ErrGone = errors.New("there is no such container")
)

// RefusedError is the Engine's answer to what it can't do.
type RefusedError struct {
	// Code is the exit code that stands for it, as that of "docker run" does: 125, or 126 and 127 where the command
	// can't be executed or isn't there.
	Code int
	// Reason is the Engine's own text.
	Reason string
}

// Error returns the reason.
func (e *RefusedError) Error() string { return "the Docker Engine says: " + e.Reason }

// refusedCode is what stands for a request that an Engine refuses.
const refusedCode = 125

// Engine is the Docker Engine of this host.
type Engine struct {
	socket string
	client *client.Client
}

// Open returns the Engine at a socket, without asking it for anything.
func Open(socket string) (*Engine, error) {
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", socket)
	}
	c, err := client.NewClientWithOpts(
		client.WithHost("unix://"+socket), client.WithAPIVersionNegotiation(),
		// A connection of its own for each request: what answers is the Engine that listens, and not one that is on its
		// way out.
		client.WithHTTPClient(&http.Client{Transport: &http.Transport{DialContext: dial, DisableKeepAlives: true}}),
	)
	if err != nil {
		return nil, err
	}
	return &Engine{socket: socket, client: c}, nil
}

// patience is how long an Engine may take for an answer that needs no work.
const patience = 15 * time.Second

// ask asks the Engine something, with an answer within the patience.
func (e *Engine) ask(ctx context.Context, question func(ctx context.Context) error) error {
	bounded, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	err := e.explain(question(bounded))
	if err != nil && bounded.Err() != nil && ctx.Err() == nil {
		return fmt.Errorf("%w within %s", ErrAway, patience)
	}
	return err
}

// answers are what an error is where the Engine gave it.
var answers = []func(error) bool{
	cerrdefs.IsInvalidArgument, cerrdefs.IsConflict, cerrdefs.IsUnauthorized, cerrdefs.IsPermissionDenied, cerrdefs.IsInternal,
	cerrdefs.IsNotImplemented, cerrdefs.IsUnavailable, cerrdefs.IsUnknown, cerrdefs.IsNotFound,
}

// explain tells what an error means.
func (e *Engine) explain(err error) error {
	switch {
	case err == nil:
		return nil
	case client.IsErrConnectionFailed(err):
		// The client keeps to itself why.
		if connection, failed := net.Dial("unix", e.socket); failed != nil { //nolint:noctx // a socket of this host answers at once
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
			return &RefusedError{Code: refusedCode, Reason: reason(strings.TrimPrefix(err.Error(), "Error response from daemon: "))}
		}
	}
	return fmt.Errorf("%w: %w", ErrAway, err)
}

// reason is what an Engine said, and what that means where nobody could guess it: for a file system that the kernel
// doesn't know, the Engine has the kernel's own words.
func reason(said string) string {
	if strings.Contains(said, "failed to mount local volume: ") && strings.HasSuffix(said, ": no such device") {
		said += `; the kernel of this host has no file system of the "type" in the options of the volume's driver. For NFS: sudo modprobe nfs`
	}
	return said
}

// Facts are what an Engine is like.
type Facts struct {
	// Systemd is true where its control groups are systemd's.
	Systemd bool
	// Survive is true where containers go on while the Engine is restarted.
	Survive bool
}

// Facts asks the Engine what it is like.
func (e *Engine) Facts(ctx context.Context) (facts Facts, err error) {
	err = e.ask(ctx, func(ctx context.Context) error {
		info, err := e.client.Info(ctx)
		facts = Facts{Systemd: info.CgroupDriver == "systemd", Survive: info.LiveRestoreEnabled}
		return err
	})
	return facts, err
}
