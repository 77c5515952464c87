package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"sync"
	"time"
)

const (
	firstBackoff   = 10 * time.Millisecond
	longestBackoff = time.Second
	requestTimeout = 10 * time.Second
)

// parameterClient pulls and pushes vectors of parameterCount numbers, of which each server holds a shard. It retries a
// server that is not up yet, or restarting, until the server has been unreachable for patience.
type parameterClient struct {
	servers  []string // host:port, by index
	patience time.Duration
	http     *http.Client
	log      *slog.Logger
}

func newParameterClient(servers []string, patience time.Duration, log *slog.Logger) *parameterClient {
	return &parameterClient{
		servers:  servers,
		patience: patience,
		log:      log,
		// Members of a group talk to each other directly, so a proxy set in the environment does not apply.
		http: &http.Client{Transport: &http.Transport{Proxy: nil}, Timeout: requestTimeout},
	}
}

// pull overwrites parameters with the current ones.
func (c *parameterClient) pull(ctx context.Context, parameters []float64) error {
	return c.eachShard(parameters, func(server int, part []float64) error {
		return c.call(ctx, server, http.MethodGet, parametersPath, nil, func(body io.Reader) error {
			return readVector(body, part)
		})
	})
}

// push sends the gradient. If the answer is lost, the gradient is sent again and may be applied twice, which is
// harmless in asynchronous training.
func (c *parameterClient) push(ctx context.Context, gradient []float64) error {
	return c.eachShard(gradient, func(server int, part []float64) error {
		return c.call(ctx, server, http.MethodPost, gradientPath, encodeVector(part), func(body io.Reader) error {
			_, err := io.Copy(io.Discard, body)
			return err
		})
	})
}

// close closes the connections.
func (c *parameterClient) close() { c.http.CloseIdleConnections() }

// eachShard calls do for all servers in parallel, each with its part of the vector.
func (c *parameterClient) eachShard(vector []float64, do func(server int, part []float64) error) error {
	errs := make([]error, len(c.servers))
	var all sync.WaitGroup
	for server := range c.servers {
		held := shardOf(len(vector), server, len(c.servers))
		all.Go(func() { errs[server] = do(server, vector[held.low:held.high]) })
	}
	all.Wait()
	return errors.Join(errs...)
}

// call makes a request, and repeats it with growing pauses while the server is unreachable.
func (c *parameterClient) call(
	ctx context.Context, server int, method, path string, body []byte, read func(io.Reader) error,
) error {
	var deadline time.Time
	for backoff := firstBackoff; ; backoff = min(2*backoff, longestBackoff) {
		err := c.attempt(ctx, server, method, path, body, read)
		switch {
		case err == nil:
			if !deadline.IsZero() {
				c.log.Info("connected", "server", c.servers[server])
			}
			return nil
		case ctx.Err() != nil:
			return ctx.Err()
		case isRefusal(err):
			return fmt.Errorf("parameter server %d (%s): %w", server, c.servers[server], err)
		case deadline.IsZero():
			deadline = time.Now().Add(c.patience)
			c.log.Info("waiting", "server", c.servers[server], "reason", err.Error())
		case time.Now().After(deadline):
			return fmt.Errorf("parameter server %d (%s) was out of reach for %s: %w; see whether it runs and logs "+
				"\"serving\", or raise -connect-timeout", server, c.servers[server], c.patience, err)
		}
		if err := pause(ctx, backoff); err != nil {
			return err
		}
	}
}

// attempt makes one request.
func (c *parameterClient) attempt(
	ctx context.Context, server int, method, path string, body []byte, read func(io.Reader) error,
) error {
	request, err := http.NewRequestWithContext(ctx, method, "http://"+c.servers[server]+path, bytes.NewReader(body))
	if err != nil {
		return err
	}
	response, err := c.http.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode >= http.StatusBadRequest {
		reason, _ := io.ReadAll(io.LimitReader(response.Body, 1024))
		return &statusError{code: response.StatusCode, reason: string(bytes.TrimSpace(reason))}
	}
	return read(response.Body)
}

// statusError is an error status of a server.
type statusError struct {
	code   int
	reason string
}

func (e *statusError) Error() string {
	return fmt.Sprintf("%d %s: %s", e.code, http.StatusText(e.code), e.reason)
}

// isRefusal reports whether the server refused the request, so that a retry would not help, rather than being
// unreachable.
func isRefusal(err error) bool {
	if status, ok := errors.AsType[*statusError](err); ok {
		return status.code < http.StatusInternalServerError
	}
	_, ok := errors.AsType[*sizeError](err)
	return ok
}

// pause waits for d, or until ctx ends, and then returns its error.
func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}
