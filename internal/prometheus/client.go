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

// Credentials are a login to a Prometheus, by name and password or by a token. All empty means none.
type Credentials struct {
	Username              string
	Password, BearerToken engine.Secret
	// Insecure allows sending them without encryption.
	Insecure bool
}

// authorised is a transport that adds the credentials.
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

// ParseURL parses the URL of a Prometheus. Its error says what is allowed.
func ParseURL(text string) (*url.URL, error) {
	u, err := url.Parse(text)
	switch {
	case err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Hostname() == "":
		// Do not show an invalid URL, as it may contain a password.
		return nil, errors.New(
			`invalid Prometheus URL; use http:// or https:// with a host, such as "https://prometheus.example.com" ` +
				`or "http://10.0.0.5:9090/prometheus"`,
		)
	case u.User != nil:
		return nil, errors.New("the URL must not contain user and password, as it is kept in the state: set them in " +
			"the provider's block prometheus")
	case u.RawQuery != "" || u.Fragment != "":
		return nil, fmt.Errorf("%q has more than scheme, host, port and path", u.Redacted())
	}
	return u, nil
}

// Check returns why this Prometheus must not be asked; nil if it may.
func (s Settings) Check() error {
	_, err := s.address()
	return err
}

// address returns the URL if the credentials may be sent to it: over TLS, to this machine, or because Insecure is set.
func (s Settings) address() (*url.URL, error) {
	u, err := ParseURL(s.URL)
	if err != nil {
		return nil, err
	}
	ip := net.ParseIP(u.Hostname())
	local := u.Hostname() == "localhost" || ip.IsLoopback()
	if (s.Password != "" || s.BearerToken != "") && u.Scheme != "https" && !local && !s.Insecure {
		return nil, fmt.Errorf("the credentials of the provider's block prometheus would be sent to %s without "+
			"encryption; use https://, or set insecure = true next to the credentials", u)
	}
	return u, nil
}

// client asks a Prometheus.
type client struct {
	api     v1.API
	address string
	timeout time.Duration
}

// narrow is a transport that limits the size of answers after decompression.
type narrow struct {
	next http.RoundTripper
	most int64
}

// RoundTrip limits how much of the answer is read.
func (n narrow) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := n.next.RoundTrip(request)
	if err == nil {
		response.Body = bounded.Body(response.Body, n.most)
	}
	return response, err
}

// newClient returns a client that reads answers of at most this many bytes.
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
		// Never follow a redirect: the credentials are not meant for its target.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}})
	if err != nil {
		return client{}, err
	}
	return client{v1.NewAPI(c), u.String(), s.Timeout}, nil
}

// QueryError is the error of a query.
type QueryError struct {
	// Quantity is what the query is for, and Query the query as configured.
	Quantity, Query string
	// Rejected means that Prometheus is working but can't answer the query, so that the query has to be changed.
	Rejected bool
	Err      error
}

// Error returns what Prometheus reports.
func (e *QueryError) Error() string {
	if e.Rejected {
		return fmt.Sprintf("Prometheus rejected the query for %s, %s: %v", e.Quantity, e.Query, e.Err)
	}
	return e.Err.Error()
}

// Unwrap returns Err.
func (e *QueryError) Unwrap() error { return e.Err }

// ask returns the answer to the query for a quantity. wrapped is the query as sent; errors show the original one.
func (c client) ask(ctx context.Context, quantity, query, wrapped string, at time.Time) (model.Vector, error) {
	answer, _, _, err := c.api.Query(ctx, wrapped, at)
	if err != nil {
		return nil, c.explain(quantity, query, err)
	}
	switch answer := answer.(type) {
	case nil:
		return nil, c.explain(quantity, query, errors.New("the answer has no result"))
	case model.Vector:
		return slices.DeleteFunc(answer, func(sample *model.Sample) bool { return sample == nil }), nil
	default:
		return nil, &QueryError{
			quantity, query, true,
			fmt.Errorf("it returns a %s instead of one value for each host, GPU or member", answer.Type()),
		}
	}
}

// maxDetail is how many characters of an invalid answer are shown.
const maxDetail = 200

// explain returns the error for a failed query.
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
		err = fmt.Errorf("querying the Prometheus at %s: %w", c.address, err)
	}
	return &QueryError{quantity, query, rejected, err}
}
