package telemetry

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"github.com/trainyard/terraform-provider-trainyard/internal/bounded"
)

// Listen listens at a Unix socket, in place of one that an agent left behind which has died. Only the user that runs this process reaches it.
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
	listener.SetUnlinkOnClose(false) // by then the name is somebody else's
	return listener, os.Chmod(short, 0o600)
}

// Query says what a resident is asked for.
type Query struct {
	// Window is the time before now to tell of; where it is 0, that is the last sample alone.
	Window time.Duration
	// New has instances looked for before, so that those are told of that have just been started. It takes the resident all processes of its host, and
	// a moment to measure them.
	New bool
}

// path is where the answer is found.
func (q Query) path() string {
	options := url.Values{}
	if q.Window > 0 {
		options.Set(windowOption, q.Window.String())
	}
	if q.New {
		options.Set(newOption, "true")
	}
	return (&url.URL{Path: reportPath, RawQuery: options.Encode()}).String()
}

// Ask asks the resident behind a socket for a report.
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

// ask asks for the report of the resident at a URL, as JSON.
func ask(ctx context.Context, client *http.Client, at string, q Query) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, at+q.path(), nil)
	if err != nil {
		return nil, err
	}
	response, err := client.Do(request)
	if err != nil {
		return nil, fmt.Errorf("the agent does not answer: %w", err)
	}
	defer response.Body.Close()
	text, err := bounded.ReadAll(response.Body, bounded.Report)
	if _, tooMuch := errors.AsType[*bounded.Error](err); tooMuch {
		return nil, fmt.Errorf("the agent's answer has %w", err)
	}
	if err != nil {
		return nil, fmt.Errorf("the agent's answer broke off: %w", err)
	}
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("the agent answered %.200s: %.200s", response.Status, text)
	}
	return text, nil
}

// shortened returns another name of a file, valid until done is called: that of a Unix socket may have 107 bytes, and that of a state
// directory more.
func shortened(file string) (name string, done func(), err error) {
	folder, err := os.OpenFile(filepath.Dir(file), unix.O_PATH|unix.O_DIRECTORY, 0)
	if err != nil {
		return "", nil, err
	}
	return filepath.Join("/proc/self/fd", fmt.Sprint(folder.Fd()), filepath.Base(file)), func() { _ = folder.Close() }, nil
}
