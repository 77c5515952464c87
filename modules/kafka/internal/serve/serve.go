// Package serve holds what the programs of the module kafka share: the address at which a member listens, HTTP
// responses, and the Kafka client.
package serve

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/trainyard/terraform-provider-trainyard/internal/bounded"
)

// defaultPort is the port of a program that is not a member of a group.
const defaultPort = "9090"

// Listen returns a member's default address to listen on: the port of TRAINYARD_ADDRESS, on all interfaces.
func Listen() string {
	if _, port, err := net.SplitHostPort(os.Getenv("TRAINYARD_ADDRESS")); err == nil {
		return ":" + port
	}
	return ":" + defaultPort
}

// Client returns a client of the Kafka cluster of these brokers, given as host:port and separated by commas.
func Client(bootstrap string, options ...kgo.Opt) (*kgo.Client, error) {
	brokers := strings.Split(bootstrap, ",")
	for _, broker := range brokers {
		if host, port, err := net.SplitHostPort(broker); err != nil || host == "" || port == "" {
			return nil, fmt.Errorf("-bootstrap must be a comma-separated list of brokers as host:port, got %q",
				bootstrap)
		}
	}
	return kgo.NewClient(append([]kgo.Opt{
		kgo.SeedBrokers(brokers...), kgo.DialTimeout(3 * time.Second),
		kgo.RequestTimeoutOverhead(5 * time.Second), kgo.RetryTimeout(10 * time.Second),
	}, options...)...)
}

// Run serves requests at an address until ctx is done.
func Run(ctx context.Context, address string, handler http.Handler) error {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
	if err != nil {
		return err
	}
	slog.Info("listening", "address", listener.Addr().String())
	return bounded.Serve(ctx, listener, handler)
}

// JSON answers with a value as JSON.
func JSON(w http.ResponseWriter, status int, value any) {
	w.Header().Set("Content-Type", "application/json")
	answer(w, status, value)
}

// Problem is an error that is sent as problem details (RFC 9457).
type Problem struct {
	Title  string `json:"title"`
	Status int    `json:"status"`
	Detail string `json:"detail"`
}

// Problemf returns a problem with an HTTP status.
func Problemf(status int, format string, args ...any) *Problem {
	return &Problem{Title: http.StatusText(status), Status: status, Detail: fmt.Sprintf(format, args...)}
}

// Error returns the detail.
func (p *Problem) Error() string { return p.Detail }

// Fail answers with an error: a [Problem] as it is, and any other as 503, to be retried.
func Fail(w http.ResponseWriter, err error) {
	problem, ok := errors.AsType[*Problem](err)
	if !ok {
		problem = Problemf(http.StatusServiceUnavailable, "%v", err)
	}
	if problem.Status == http.StatusServiceUnavailable {
		w.Header().Set("Retry-After", "2")
	}
	w.Header().Set("Content-Type", "application/problem+json")
	answer(w, problem.Status, problem)
}

func answer(w http.ResponseWriter, status int, value any) {
	w.WriteHeader(status)
	if err := json.NewEncoder(w).Encode(value); err != nil {
		slog.Debug("can't send the response", "error", err)
	}
}
