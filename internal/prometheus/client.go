package prometheus

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"slices"
	"time"

	"github.com/prometheus/client_golang/api"
	v1 "github.com/prometheus/client_golang/api/prometheus/v1"
	"github.com/prometheus/common/model"

	"github.com/trainyard/terraform-provider-trainyard/internal/bounded"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
)

// Credentials are how to log in to a Prometheus: by name and password, or by a token; none where all are empty.
type Credentials struct {
	Username              string
	Password, BearerToken engine.Secret
	// Insecure has them sent without encryption, too.
	Insecure bool
}

// authorised is a transport that logs in.
type authorised struct {
	Credentials
	next http.RoundTripper
}

// RoundTrip sends a copy of the request with the credentials.
func (a authorised) RoundTrip(request *http.Request) (*http.Response, error) {
	request = request.Clone(request.Context())
	switch {
	case a.BearerToken != "":
		request.Header.Set("Authorization", "Bearer "+string(a.BearerToken))
	case a.Username != "":
		request.SetBasicAuth(a.Username, string(a.Password))
	}
	return a.next.RoundTrip(request)
}

// ParseURL returns the address of a Prometheus, or an error that says what is allowed.
func ParseURL(text string) (*url.URL, error) {
	u, err := url.Parse(text)
	switch {
	case err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Hostname() == "":
		// What can't be parsed is not shown: there may be a password in it.
		return nil, errors.New(`it is not the address of a Prometheus; http:// or https:// with a host is, such as "https://prometheus.example.com" or "http://10.0.0.5:9090/prometheus"`)
	case u.User != nil:
		return nil, errors.New("user and password are no part of the address, which is kept in the state: set them in the provider's block prometheus")
	case u.RawQuery != "" || u.Fragment != "":
		return nil, fmt.Errorf("%q has more than scheme, host, port and path", u.Redacted())
	}
	return u, nil
}

// Check returns why the Prometheus must not be asked; nil if it may.
func (s Settings) Check() error {
	_, err := s.address()
	return err
}

// address returns the address, to which the credentials may be sent: encrypted, not beyond this machine, or as asked
// for.
func (s Settings) address() (*url.URL, error) {
	u, err := ParseURL(s.URL)
	if err != nil {
		return nil, err
	}
	ip := net.ParseIP(u.Hostname())
	local := u.Hostname() == "localhost" || ip.IsLoopback()
	if (s.Password != "" || s.BearerToken != "") && u.Scheme != "https" && !local && !s.Insecure {
		return nil, fmt.Errorf("%s would be sent the credentials of the provider's block prometheus without encryption, to be read on the way; ask it by https://, or set insecure = true beside the credentials", u)
	}
	return u, nil
}

// client asks a Prometheus.
type client struct {
	api     v1.API
	address string
	timeout time.Duration
}

// narrow is a transport whose answers have a bound, also once they are unpacked.
type narrow struct {
	next http.RoundTripper
	most int64
}

// RoundTrip returns the answer as far as it is read.
func (n narrow) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := n.next.RoundTrip(request)
	if err == nil {
		response.Body = bounded.Body(response.Body, n.most)
	}
	return response, err
}

// newClient returns a client that reads answers of so many bytes.
func newClient(s Settings, most int64) (client, error) {
	u, err := s.address()
	if err != nil {
		return client{}, err
	}
	transport := s.transport
	if transport == nil {
		transport = api.DefaultRoundTripper
	}
	c, err := api.NewClient(api.Config{Address: s.URL, Client: &http.Client{
		Transport: narrow{authorised{s.Credentials, transport}, most},
		// Wherever a redirect leads, the credentials are not for it.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}})
	if err != nil {
		return client{}, err
	}
	return client{v1.NewAPI(c), u.String(), s.Timeout}, nil
}

// QueryError is the error of a query.
type QueryError struct {
	// Quantity is what the query is for, and Query is it as it was asked for.
	Quantity, Query string
	// Rejected tells that Prometheus understood the query, and can't answer it: another query is needed.
	Rejected bool
	Err      error
}

// Error returns what Prometheus says.
func (e *QueryError) Error() string {
	if e.Rejected {
		return fmt.Sprintf("Prometheus can't answer the query for %s, %s: %v", e.Quantity, e.Query, e.Err)
	}
	return e.Err.Error()
}

// Unwrap returns the error itself.
func (e *QueryError) Unwrap() error { return e.Err }

// ask returns the answer to the query of a quantity, which is asked in another form: wrapped.
func (c client) ask(ctx context.Context, quantity, query, wrapped string, at time.Time) (model.Vector, error) {
	answer, _, _, err := c.api.Query(ctx, wrapped, at)
	if err != nil {
		return nil, c.explain(quantity, query, err)
	}
	switch answer := answer.(type) {
	case nil:
		return nil, c.explain(quantity, query, errors.New("there is no result in its answer"))
	case model.Vector:
		return slices.DeleteFunc(answer, func(sample *model.Sample) bool { return sample == nil }), nil
	default:
		return nil, &QueryError{quantity, query, true, fmt.Errorf("it returns a %s, and not one value for each host, GPU or member", answer.Type())}
	}
}

// maxDetail is how much of an answer that is no answer of Prometheus is shown.
const maxDetail = 200

// explain says what it means that a query failed.
func (c client) explain(quantity, query string, err error) error {
	var answered *v1.Error
	rejected := false
	switch _, tooMuch := errors.AsType[*bounded.Error](err); {
	case tooMuch:
		err = fmt.Errorf("the Prometheus at %s answers %w to the query %s", c.address, err, query)
	case errors.As(err, &answered) && (answered.Type == v1.ErrBadData || answered.Type == v1.ErrExec):
		rejected = true
	case errors.Is(err, context.DeadlineExceeded):
		err = fmt.Errorf("the Prometheus at %s did not answer within %s: %w", c.address, c.timeout, err)
	case answered != nil && answered.Detail != "":
		err = fmt.Errorf("the Prometheus at %s: %w (%.*q)", c.address, err, maxDetail, answered.Detail)
	case answered != nil:
		err = fmt.Errorf("the Prometheus at %s: %w", c.address, err)
	default:
		err = fmt.Errorf("the Prometheus at %s can't be asked: %w", c.address, err)
	}
	return &QueryError{quantity, query, rejected, err}
}
