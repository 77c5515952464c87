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

// Client returns a Docker client of the engine at this endpoint, which agrees with it on the version of the API. It
// connects at the first call. An error here is about the credentials: TLS material that is missing or
// can't be read, a jump host that is none.
func (e Endpoint) Client(credentials Credentials) (*client.Client, error) {
	dial, err := e.dialer(credentials)
	if err != nil {
		return nil, e.at(err)
	}
	dial = holdFailure(dial, time.Second)
	transport := &http.Transport{
		// The dialer returns what HTTP is spoken over, TLS and SSH included: so the calls that take a connection over
		// (exec, attach) get the very same.
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			conn, err := dial(ctx)
			return conn, e.at(err)
		},
		// As many as are used in parallel, or each burst of calls would close most of its connections. There is no
		// bound on those in use: streams of events and logs hold theirs for long.
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

// maxIdle is how many HTTP connections a client keeps for further calls.
const maxIdle = 16

// httpHost returns what the Docker client names in its requests.
func (e Endpoint) httpHost() string {
	switch e.Scheme {
	case SchemeTCP:
		return e.String()
	case SchemeSSH, SchemePipe:
		return "tcp://" + client.DummyHost // the address itself is no host of HTTP
	}
	return "unix://" + e.Socket
}

// dialFunc connects to an engine. Its errors are a [sshclient.Failure], or the context's.
type dialFunc func(ctx context.Context) (net.Conn, error)

// dialer returns the way to this endpoint.
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

// holdFailure returns a dialer that gives the same failure again for a while. The Docker client asks for the API's
// version before each call until it has it, one call after the other: without this, each of the many calls of a plan
// would wait for an absent host in turn.
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
