package endpoint

import (
	"context"
	"errors"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/docker/docker/client"

	"github.com/trainyard/terraform-provider-trainyard/internal/sshclient"
)

// Client returns a Docker client for the engine at this endpoint, which negotiates the API version. It connects at the
// first call, so an error here is about the credentials: missing or unreadable TLS material, or an invalid jump host.
func (e Endpoint) Client(credentials Credentials) (*client.Client, error) {
	dial, err := e.dialer(credentials)
	if err != nil {
		return nil, e.at(err)
	}
	dial = holdFailure(dial, time.Second)
	transport := &http.Transport{
		// The dialer returns the connection for HTTP, including TLS and SSH, so that the calls that hijack a connection
		// (exec, attach) get the same.
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			conn, err := dial(ctx)
			return conn, e.at(err)
		},
		// As many as are used in parallel, otherwise each burst of calls would close most of its connections. There is
		// no limit on those in use: streams of events and logs hold theirs for long.
		MaxIdleConns:        maxIdle,
		MaxIdleConnsPerHost: maxIdle,
		IdleConnTimeout:     90 * time.Second,
		DisableCompression:  e.Scheme == SchemeUnix || e.Scheme == SchemePipe,
	}
	return client.NewClientWithOpts(
		client.WithHost(e.httpHost()),
		client.WithHTTPClient(&http.Client{Transport: transport, CheckRedirect: client.CheckRedirect}),
		client.WithAPIVersionNegotiation(),
	)
}

// maxIdle is how many idle HTTP connections a client keeps.
const maxIdle = 16

// httpHost returns the host of the Docker client's requests.
func (e Endpoint) httpHost() string {
	switch e.Scheme {
	case SchemeTCP:
		return e.String()
	case SchemeSSH, SchemePipe:
		return "tcp://" + client.DummyHost // the address itself is not a valid HTTP host
	}
	return "unix://" + e.Socket
}

// dialFunc connects to an engine. Its errors are a [sshclient.Failure], or the context's.
type dialFunc func(ctx context.Context) (net.Conn, error)

// dialer returns the dial function for this endpoint.
func (e Endpoint) dialer(credentials Credentials) (dialFunc, error) {
	switch e.Scheme {
	case SchemeUnix:
		return localDialer("unix", e.Socket, credentials.DialTimeout), nil
	case SchemePipe:
		return localDialer(sshclient.Pipe, e.Socket, credentials.DialTimeout), nil
	case SchemeTCP:
		return tcpDialer(e, credentials)
	}
	return sshDialer(e, credentials)
}

// holdFailure returns a dialer that repeats a failure for a while. The Docker client negotiates the API version before
// each call until that succeeds, one call after the other: without this, each of the many calls of a plan would wait
// for an unreachable host in turn.
func holdFailure(dial dialFunc, hold time.Duration) dialFunc {
	var mu sync.Mutex
	var last *sshclient.Failure
	var until time.Time
	held := func() error {
		mu.Lock()
		defer mu.Unlock()
		if last != nil && time.Now().Before(until) {
			return last
		}
		return nil
	}
	return func(ctx context.Context) (net.Conn, error) {
		if err := held(); err != nil {
			return nil, err
		}
		conn, err := dial(ctx)
		if f := (*sshclient.Failure)(nil); errors.As(err, &f) {
			mu.Lock()
			defer mu.Unlock()
			last, until = f, time.Now().Add(hold)
		}
		return conn, err
	}
}
