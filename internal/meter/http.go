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

// requestsAtOnce bounds how many requests a server has to answer at once.
const requestsAtOnce = 4

// newClient returns a client that asks each server so much at once; 0 sets no bound.
func newClient(atOnce int) *http.Client {
	return &http.Client{
		Transport: &http.Transport{
			Proxy: http.ProxyFromEnvironment, MaxConnsPerHost: atOnce, MaxIdleConnsPerHost: 1, IdleConnTimeout: time.Minute,
			MaxResponseHeaderBytes: bounded.Headers,
		},
		// A redirected POST would arrive as another request.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// pageKey is a page that is read.
type pageKey struct{ url string }

// askPage notes that an address has to be asked.
func (r *reading) askPage(address string) *errand[[]byte] {
	return share(r, pageKey{address}, nil, func(ctx context.Context) ([]byte, error) {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
		if err != nil {
			return nil, errors.New("it is no address")
		}
		request.Header.Set("Accept", "application/json")
		return answerTo(r.meter.http, request)
	})
}

// answerTo returns the body of the answer to a request. Only answers that say that all is well count.
func answerTo(client *http.Client, request *http.Request) ([]byte, error) {
	response, err := client.Do(request)
	if err != nil {
		return nil, unreached(request.Context(), err)
	}
	defer response.Body.Close()
	body, err := bounded.ReadAll(response.Body, bounded.Answer)
	switch _, tooMuch := errors.AsType[*bounded.Error](err); {
	case response.StatusCode < 200 || response.StatusCode > 299:
		if to := response.Header.Get("Location"); to != "" {
			return nil, fmt.Errorf("it answers %s, to %s, which is not followed: ask that address", response.Status, plainAddress(to))
		}
		return nil, fmt.Errorf("it answers %s", response.Status)
	case tooMuch:
		return nil, fmt.Errorf("its answer has %w", err)
	case err != nil:
		return nil, unreached(request.Context(), err)
	}
	return body, nil
}

// unreached says why there was no answer, without the address, of which a part may be nobody else's business.
func unreached(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if failed, ok := errors.AsType[*url.Error](err); ok {
		err = failed.Err
	}
	return fmt.Errorf("it can't be asked: %w", err)
}

// plainAddress is an address without what may be secret in it.
func plainAddress(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return "the address"
	}
	return (&url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path}).String()
}
