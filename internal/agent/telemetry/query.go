package telemetry

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/trainyard/terraform-provider-trainyard/internal/bounded"
)

// Query is what a resident is asked for.
type Query struct {
	// Window is the time before now to report on; 0 for only the last sample.
	Window time.Duration
	// New first looks for instances, to include those that were just started. For that, the resident reads all
	// processes of its host, and measures them for a moment.
	New bool
}

// path is the URL path of the query.
func (q Query) path() string {
	options := url.Values{}
	if q.Window > 0 {
		options.Set(windowOption, q.Window.String())
	}
	if q.New {
		options.Set(newOption, "true")
	}
	return (&url.URL{Path: reportPath, RawQuery: options.Encode()}).String()
}

// The requests that a resident answers, see [Resident.Handler].
const (
	reportPath   = "/report"
	windowOption = "window"
	newOption    = "new"
)

// ask requests a report from the resident at a URL, and returns it as JSON.
func ask(ctx context.Context, client *http.Client, at string, q Query) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, at+q.path(), nil)
	if err != nil {
		return nil, err
	}
	response, err := client.Do(request)
	if err != nil {
		return nil, fmt.Errorf("the agent does not answer: %w", err)
	}
	defer response.Body.Close()
	text, err := bounded.ReadAll(response.Body, bounded.Report)
	if _, tooMuch := errors.AsType[*bounded.Error](err); tooMuch {
		return nil, fmt.Errorf("the agent's answer has %w", err)
	}
	if err != nil {
		return nil, fmt.Errorf("reading the agent's answer: %w", err)
	}
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("the agent answered %.200s: %.200s", response.Status, text)
	}
	return text, nil
}

// CheckWindow returns an error for a window that agents can't report on.
func CheckWindow(window time.Duration) error {
	if window < Interval || window > Memory {
		return fmt.Errorf("agents can't report on a window of %s: use %s to %s", window, Interval, Memory)
	}
	return nil
}
