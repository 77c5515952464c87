package meter

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/trainyard/terraform-provider-trainyard/internal/bounded"
)

// requestsAtOnce bounds the concurrent requests to one server.
const requestsAtOnce = 4

// newClient returns a client with at most this many concurrent requests per server; 0 for no limit.
func newClient(atOnce int) *http.Client {
	return &http.Client{
		Transport: transport{&http.Transport{
			Proxy: http.ProxyFromEnvironment, MaxConnsPerHost: atOnce, MaxIdleConnsPerHost: 1,
			IdleConnTimeout:        time.Minute,
			MaxResponseHeaderBytes: bounded.Headers,
		}},
		// A redirected POST would become another request.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// transport leaves out the Location of a redirect if it is not valid. The client would quote it in an error, and it may
// repeat secrets of the request's URL.
type transport struct{ *http.Transport }

func (t transport) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := t.Transport.RoundTrip(request)
	if err != nil {
		return nil, err
	}
	if _, err := response.Location(); err != nil && response.StatusCode/100 == 3 {
		response.Header.Del("Location")
	}
	return response, nil
}

// endpointKey identifies a JSON endpoint.
type endpointKey struct{ url string }

// askEndpoint requests what a JSON endpoint serves.
func (r *reading) askEndpoint(address string) *sharedRequest[[]byte] {
	return share(r, endpointKey{address}, nil, func(ctx context.Context) ([]byte, error) {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
		if err != nil {
			return nil, errors.New("the address is not valid")
		}
		request.Header.Set("Accept", "application/json")
		return answerTo(r.meter.http, request, plainAddress)
	})
}

// answerTo returns the body of the answer to a request. A status other than 2xx is an error, in which name is how a URL
// is shown.
func answerTo(client *http.Client, request *http.Request, name func(address string) string) ([]byte, error) {
	response, err := client.Do(request)
	if err != nil {
		return nil, unreached(request.Context(), err)
	}
	defer response.Body.Close()
	body, err := bounded.ReadAll(response.Body, bounded.Answer)
	switch _, tooMuch := errors.AsType[*bounded.Error](err); {
	case response.StatusCode < 200 || response.StatusCode > 299:
		if to := response.Header.Get("Location"); to != "" {
			return nil, fmt.Errorf("HTTP %s: redirects are not followed; use %s", response.Status, name(to))
		}
		return nil, fmt.Errorf("HTTP %s", response.Status)
	case tooMuch:
		return nil, fmt.Errorf("its answer has %w", err)
	case err != nil:
		return nil, unreached(request.Context(), err)
	}
	return body, nil
}

// unreached returns the error for a request without an answer. It leaves out the URL, which may contain secrets.
func unreached(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if failed, ok := errors.AsType[*url.Error](err); ok {
		err = failed.Err
	}
	return fmt.Errorf("request failed: %w", err)
}

// plainAddress returns a URL without the parts that may be secret.
func plainAddress(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return "the address"
	}
	return (&url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path}).String()
}

// serverAddress returns only the scheme and host of a URL whose path is secret, too.
func serverAddress(address string) string {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" {
		return "an address that is not shown"
	}
	return (&url.URL{Scheme: u.Scheme, Host: u.Host}).String()
}
