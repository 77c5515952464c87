//go:build unix

package bounded

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/trainyard/terraform-provider-trainyard/internal/acctest/patience"
)

// clingers is the number of stuck connections of each kind.
const clingers = 2000

// What stuck connections send at first, and whether they keep sending a byte at a time.
const (
	silent = ""
	idle   = "GET /short HTTP/1.1\r\nHost: x\r\n\r\n"
	slow   = "GET /short HTTP/1.1\r\nHost: x\r\nSlow: "
	deaf   = "GET / HTTP/1.1\r\nHost: x\r\n\r\n" // for a response larger than all buffers
)

func answer(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/short" {
		_, _ = io.WriteString(w, "all is well")
		return
	}
	for part := strings.Repeat("x", 1<<16); ; {
		if _, err := io.WriteString(w, part); err != nil {
			return
		}
	}
}

// watched is a listener that counts its connections.
type watched struct {
	net.Listener

	accepted, open atomic.Int64
}

func (w *watched) Accept() (net.Conn, error) {
	c, err := w.Listener.Accept()
	if err != nil {
		return nil, err
	}
	w.accepted.Add(1)
	w.open.Add(1)
	return &watchedConn{Conn: c, of: w}, nil
}

type watchedConn struct {
	net.Conn

	of     *watched
	closed atomic.Bool
}

func (c *watchedConn) Close() error {
	if !c.closed.Swap(true) {
		c.of.open.Add(-1)
	}
	return c.Conn.Close()
}

// start starts a server.
func (l limits) start(t *testing.T) *watched {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	w := &watched{Listener: listener}
	ctx, cancel := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() { served <- l.serve(ctx, w, http.HandlerFunc(answer)) }()
	t.Cleanup(func() {
		cancel()
		if err := <-served; err != nil {
			t.Error(err)
		}
		w.await(t, "all, at the end of the server", func() bool { return w.open.Load() == 0 })
	})
	return w
}

// cling opens stuck connections of these kinds in turn, until the test ends.
func (w *watched) cling(t *testing.T, number int, ways ...string) {
	t.Helper()
	before := w.accepted.Load()
	var slowly []net.Conn
	for i := range number {
		connection, err := net.Dial("tcp", w.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = connection.Close() })
		way := ways[i%len(ways)]
		_, _ = io.WriteString(connection, way) // it may be closed already
		if way == slow {
			slowly = append(slowly, connection)
		}
	}
	go func() {
		for tick := time.Tick(500 * time.Millisecond); t.Context().Err() == nil; <-tick {
			for _, connection := range slowly {
				_, _ = io.WriteString(connection, "x") // it may be closed already
			}
		}
	}()
	w.await(t, "none", func() bool { return w.accepted.Load() == before+int64(number) })
}

// await waits until seen returns true.
func (w *watched) await(t *testing.T, what string, seen func() bool) {
	t.Helper()
	tick, hangs := time.Tick(10*time.Millisecond), time.After(patience.Limit)
	for !seen() {
		select {
		case <-tick:
		case <-hangs:
			t.Fatalf("of %d connections, %d are open; expected to be closed: %s", w.accepted.Load(), w.open.Load(),
				what)
		}
	}
}

// scrape fails unless the server answers a request.
func (w *watched) scrape(t *testing.T) {
	t.Helper()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: patience.Limit}
	response, err := client.Get("http://" + w.Addr().String() + "/short")
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if text, err := io.ReadAll(response.Body); string(text) != "all is well" || err != nil {
		t.Errorf("the answer is %q (%v)", text, err)
	}
}

// enough skips a test if the process may not open this many files.
func enough(t *testing.T, files uint64) {
	t.Helper()
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil || limit.Cur < files {
		t.Skipf("it takes %d open files, and the limit is %d (%v)", files, limit.Cur, err)
	}
}

// TestServeClosesByTime: silent and slow connections are closed in time, and others are answered meanwhile.
func TestServeClosesByTime(t *testing.T) {
	const most = 4*clingers + 500
	enough(t, most)
	const patient = 20 * time.Second // others get along with it, though the machine may be busy with more than this
	w := limits{header: patient, read: patient, write: patient, idle: patient, connections: most}.start(t)
	w.cling(t, clingers, silent, idle)
	w.cling(t, clingers, slow)
	w.cling(t, 20, deaf)
	w.scrape(t)
	w.await(t, "all", func() bool { return w.open.Load() == 0 })
	w.scrape(t)
}

// TestServeClosesByNumber: with timeouts of an hour, no more connections than allowed stay open,
// and others are answered.
func TestServeClosesByNumber(t *testing.T) {
	enough(t, 2*clingers+500)
	patient := limits{
		header: time.Hour, read: time.Hour, write: time.Hour, idle: time.Hour, connections: usual.connections,
	}
	for name, test := range map[string]struct {
		number int
		ways   []string
	}{"idle": {clingers, []string{silent, idle}}, "slow": {clingers, []string{slow}}, "deaf": {200, []string{deaf}},
		"all": {400, []string{silent, idle, slow, deaf}}} {
		t.Run(name, func(t *testing.T) {
			w := patient.start(t)
			w.cling(t, test.number, test.ways...)
			w.await(t, "all but as many as there is room for",
				func() bool { return w.open.Load() <= int64(usual.connections) })
			for range 3 {
				w.scrape(t)
			}
		})
	}
}

// TestServeEnds: a server ends with its context, with or without open connections, and with its listener.
func TestServeEnds(t *testing.T) {
	w := usual.start(t)
	w.cling(t, 8, silent, idle, slow, deaf)
	w.scrape(t)
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_ = closed.Close()
	if err := Serve(t.Context(), closed, nil); !errors.Is(err, net.ErrClosed) {
		t.Errorf("without a listener that listens: %v", err)
	}
}
