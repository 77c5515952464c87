//go:build linux

package testbed

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"sync"
	"testing"
	"time"
)

// Proxy stands between a client and a node's engine: it forwards calls, counts them, and applies faults to them. A
// connection carries one call, so that no client retries by itself, and each call is counted.
type Proxy struct {
	// Socket is the path of the Unix socket that it listens on.
	Socket string

	server *http.Server
	served chan error
	engine http.Handler

	mu     sync.Mutex
	calls  []Call
	faults []*fault
}

// Call is a request to an engine.
type Call struct {
	// Method is the HTTP method.
	Method string
	// Path is the path without the API version and the query: "/services/create".
	Path string
}

// String returns the call as in Docker's API documentation.
func (c Call) String() string { return c.Method + " " + c.Path }

// Action is what a fault does with a call that next would answer.
type Action func(next http.Handler) http.Handler

// Fault applies an action to selected calls. Calls are counted from when the fault is set.
type Fault struct {
	// Match selects the calls that are counted and affected; nil selects all.
	Match func(Call) bool
	// Nth is the first affected call, counted from 1.
	Nth int
	// Onwards affects all later calls as well.
	Onwards bool
	// Do is the action.
	Do Action
}

// fault is a fault that is set.
type fault struct {
	Fault
	seen int // calls that matched
}

// Matching matches calls by method, and by a pattern as in path.Match: Matching("POST", "/services/*/update").
func Matching(method, pattern string) func(Call) bool {
	if _, err := path.Match(pattern, ""); err != nil {
		panic(fmt.Sprintf("%q: %v", pattern, err))
	}
	return func(call Call) bool {
		matched, _ := path.Match(pattern, call.Path) // it is well-formed, see above
		return call.Method == method && matched
	}
}

// Fail answers with HTTP 500 and a message, as an engine does that can't carry out a call.
func Fail(message string) Action {
	return func(http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusInternalServerError)
			_, _ = fmt.Fprintf(w, `{"message":%q}`, message) // the client may be gone
		})
	}
}

// Delay forwards the call after some time, unless the client has given up by then.
func Delay(by time.Duration) Action {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			timer := time.NewTimer(by)
			defer timer.Stop()
			select {
			case <-timer.C:
				next.ServeHTTP(w, r)
			case <-r.Context().Done():
			}
		})
	}
}

// Drop closes the connection without forwarding the call, as if the engine were gone.
func Drop() Action {
	return func(http.Handler) http.Handler {
		return http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
	}
}

// DropAnswer forwards the call, waits until the engine has carried it out, and closes the connection without an answer.
func DropAnswer() Action {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			next.ServeHTTP(httptest.NewRecorder(), r.WithContext(context.WithoutCancel(r.Context())))
			panic(http.ErrAbortHandler)
		})
	}
}

// NewProxy starts a proxy for a node's engine that ends with the test.
func NewProxy(t testing.TB, node *Node) *Proxy {
	t.Helper()
	p, err := StartProxy(node)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Errorf("closing the proxy: %v", err)
		}
	})
	return p
}

// StartProxy starts a proxy for a node's engine.
func StartProxy(node *Node) (*Proxy, error) {
	p := &Proxy{
		Socket: filepath.Join(node.bed.folder.path, fmt.Sprintf("proxy%d.sock", node.bed.proxies.Add(1))),
		engine: reverse(node.Socket),
		served: make(chan error, 1),
	}
	listener, err := net.Listen("unix", p.Socket)
	if err != nil {
		return nil, err
	}
	p.server = &http.Server{Handler: p, ReadHeaderTimeout: time.Minute}
	p.server.SetKeepAlivesEnabled(false)
	go func() { p.served <- p.server.Serve(listener) }()
	return p, nil
}

// Close ends the proxy, and the calls in progress.
func (p *Proxy) Close() error {
	err := p.server.Close()
	if served := <-p.served; !errors.Is(served, http.ErrServerClosed) {
		err = errors.Join(err, served)
	}
	return err
}

// reverse forwards requests to a Unix socket; answers are streamed.
func reverse(socket string) *httputil.ReverseProxy {
	return &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) { r.Out.URL.Scheme, r.Out.URL.Host = "http", "docker" },
		Transport: &http.Transport{
			DisableKeepAlives:  true,
			DisableCompression: true,
			DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
				return (&net.Dialer{}).DialContext(ctx, "unix", socket)
			},
		},
		FlushInterval: -1,
		// Without a reachable engine the client gets no answer, as without a proxy.
		ErrorHandler: func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) },
		ErrorLog:     log.New(io.Discard, "", 0),
	}
}

// Host is the proxy's endpoint, as in DOCKER_HOST.
func (p *Proxy) Host() string { return "unix://" + p.Socket }

// On adds a fault.
func (p *Proxy) On(f Fault) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.faults = append(p.faults, &fault{Fault: f})
}

// Calls are the calls since the start or the last Reset, in order of arrival, including those that faults affected.
func (p *Proxy) Calls() []Call {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.calls)
}

// Reset forgets all calls and faults.
func (p *Proxy) Reset() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.calls, p.faults = nil, nil
}

// version matches the API version with which the paths of most requests begin.
var version = regexp.MustCompile(`^/v\d+\.\d+`)

// ServeHTTP forwards a request, or applies a fault to it.
func (p *Proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p.take(Call{Method: r.Method, Path: version.ReplaceAllString(r.URL.Path, "")}).ServeHTTP(w, r)
}

// take counts a call and returns its handler.
func (p *Proxy) take(call Call) http.Handler {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.calls = append(p.calls, call)
	handler := p.engine
	for _, f := range p.faults {
		if f.Match != nil && !f.Match(call) {
			continue
		}
		f.seen++
		if f.seen == f.Nth || f.Onwards && f.seen > f.Nth {
			handler = f.Do(handler)
		}
	}
	return handler
}
