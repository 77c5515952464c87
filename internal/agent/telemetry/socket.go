//go:build linux

package telemetry

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/trainyard/terraform-provider-trainyard/internal/bounded"
)

// Listen listens at a Unix socket, and replaces one that a dead agent left behind. Only the user that runs this process
// can connect.
func Listen(socket string) (net.Listener, error) {
	short, done, err := shortened(socket)
	if err != nil {
		return nil, err
	}
	defer done()
	if err := os.Remove(short); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	listener, err := net.ListenUnix("unix", &net.UnixAddr{Name: short, Net: "unix"})
	if err != nil {
		return nil, err
	}
	listener.SetUnlinkOnClose(false) // by then somebody else may use the name
	return listener, os.Chmod(short, 0o600)
}

// Ask requests a report from the resident behind a socket.
func Ask(ctx context.Context, socket string, q Query) (Report, error) {
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		short, done, err := shortened(socket)
		if err != nil {
			return nil, err
		}
		defer done()
		var dialer net.Dialer
		return dialer.DialContext(ctx, "unix", short)
	}
	transport := &http.Transport{DialContext: dial, DisableKeepAlives: true, MaxResponseHeaderBytes: bounded.Headers}
	text, err := ask(ctx, &http.Client{Transport: transport}, "http://agent", q)
	if err != nil {
		return Report{}, err
	}
	return ReadReport(text)
}

// shortened returns another name for a file, valid until done is called: that of a Unix socket may have 107 bytes, and
// that of a state directory more.
func shortened(file string) (name string, done func(), err error) {
	folder, err := os.OpenFile(filepath.Dir(file), unix.O_PATH|unix.O_DIRECTORY, 0)
	if err != nil {
		return "", nil, err
	}
	return filepath.Join("/proc/self/fd", fmt.Sprint(folder.Fd()), filepath.Base(file)), func() {
		_ = folder.Close()
	}, nil
}
