package meter

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/trainyard/terraform-provider-trainyard/internal/autoscale"
	"github.com/trainyard/terraform-provider-trainyard/internal/bounded"
	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/printable"
)

// Timeouts of single requests to a long-running hook: the initial request and a poll.
const (
	longestCall = domain.MaxHookTimeout
	longestLook = 30 * time.Second
)

const (
	// longestPause caps the Retry-After of a hook.
	longestPause = 10 * time.Minute
	// longestProgress limits the stored progress of a hook in bytes, and longestLocation the URL for polling.
	longestProgress = 200
	longestLocation = 2000
)

// Reply is the state of a long-running hook.
type Reply struct {
	// Done means that it has finished successfully.
	Done bool
	// Location is the URL for polling; if empty, the initial request is repeated.
	Location string
	// Progress is the progress that it reports, as one short line.
	Progress string
	// After is how long it asks to be left alone; 0 if it does not say.
	After time.Duration
}

// TransientError is an error that may pass soon.
type TransientError struct {
	Err error
	// After is as in [Reply].
	After time.Duration
}

// Error returns the message of Err.
func (e *TransientError) Error() string { return e.Err.Error() }

// Unwrap returns Err.
func (e *TransientError) Unwrap() error { return e.Err }

// CallHook calls a hook about a change and returns its state. The ID goes into the header Idempotency-Key. Location is
// the URL for polling from the last reply, or empty for the initial request. A command runs until it has finished. The
// error is a [TransientError] if a retry makes sense.
func CallHook(ctx context.Context, hook domain.ScalingHook, id, location string, change any) (Reply, error) {
	body, err := json.Marshal(change)
	if err != nil {
		return Reply{}, err
	}
	if len(hook.Command) > 0 {
		_, err := run(ctx, hook.Command, body)
		if err != nil {
			return Reply{}, fmt.Errorf("%s: %w", hook.Command[0], err)
		}
		return Reply{Done: true}, nil
	}
	address, limit := hook.URL, longestCall
	if location != "" {
		address, limit = location, longestLook
	}
	ctx, cancel := context.WithTimeoutCause(ctx, limit, &TransientError{Err: fmt.Errorf("no answer within %s", limit)})
	defer cancel()
	var request *http.Request
	if location != "" {
		request, err = http.NewRequestWithContext(ctx, http.MethodGet, location, nil)
	} else {
		request, err = http.NewRequestWithContext(ctx, http.MethodPost, hook.URL, bytes.NewReader(body))
	}
	if err != nil {
		return Reply{}, fmt.Errorf("%s is not valid", plainAddress(address))
	}
	request.Header.Set("Accept", "application/json")
	if location == "" {
		request.Header.Set("Content-Type", "application/json")
		request.Header.Set("Idempotency-Key", strconv.Quote(id))
		request.Header.Set("Prefer", "respond-async")
	}
	reply, err := exchange(request)
	if transient, ok := errors.AsType[*TransientError](err); ok {
		return Reply{}, &TransientError{fmt.Errorf("%s: %w", plainAddress(address), transient.Err), transient.After}
	}
	if err != nil {
		return Reply{}, fmt.Errorf("%s: %w", plainAddress(address), err)
	}
	return reply, nil
}

// CallOff asks a hook at work to stop.
func CallOff(ctx context.Context, location string) error {
	ctx, cancel := context.WithTimeout(ctx, longestLook)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodDelete, location, nil)
	if err != nil {
		return errors.New("the address is not valid")
	}
	_, err = answerTo(hooks, request, plainAddress)
	return err
}

// exchange sends a request, and returns the state that the answer reports.
func exchange(request *http.Request) (Reply, error) {
	response, err := hooks.Do(request)
	if err != nil {
		if err = unreached(request.Context(), err); request.Context().Err() != nil {
			return Reply{}, err // it says itself whether to retry
		}
		return Reply{}, &TransientError{Err: err}
	}
	defer response.Body.Close()
	// The status alone decides, so a body that is truncated or unreadable is no error.
	body, _ := io.ReadAll(io.LimitReader(response.Body, bounded.Answer))
	return standing(response, body, time.Now())
}

// standing returns the state that an answer reports.
func standing(response *http.Response, body []byte, now time.Time) (Reply, error) {
	var answer struct {
		Progress json.RawMessage `json:"progress"`
		Title    json.RawMessage `json:"title"`
		Detail   json.RawMessage `json:"detail"`
	}
	_ = json.Unmarshal(body, &answer) // it need not be JSON
	request, after := response.Request, pauseOf(response.Header.Get("Retry-After"), now)
	looked := request.Method == http.MethodGet
	switch status := response.StatusCode; {
	case status == http.StatusAccepted:
		location, err := locationOf(request.URL, response.Header.Get("Location"))
		if looked && location == "" {
			location = request.URL.String()
		}
		return Reply{Location: location, Progress: progressOf(answer.Progress), After: after}, err
	case status >= 200 && status <= 299, looked && status == http.StatusSeeOther:
		return Reply{Done: true}, nil
	case looked && (status == http.StatusNotFound || status == http.StatusGone):
		return Reply{}, nil // it no longer knows the change, for example after a restart
	case status >= 300 && status <= 399:
		return Reply{}, fmt.Errorf("HTTP %s: redirects are not followed; use %s", line(response.Status),
			plainAddress(response.Header.Get("Location")))
	}
	err := fmt.Errorf("HTTP %s", line(response.Status))
	for _, why := range []json.RawMessage{answer.Detail, answer.Title} {
		if text := textOf(why); text != "" {
			err = fmt.Errorf("%w: %s", err, text)
			break
		}
	}
	switch response.StatusCode {
	case http.StatusRequestTimeout, http.StatusTooEarly, http.StatusTooManyRequests, http.StatusBadGateway,
		http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return Reply{}, &TransientError{err, after}
	}
	return Reply{}, err
}

// locationOf returns the URL that a hook names, which may be relative to the requested one; "" if it names none.
func locationOf(asked *url.URL, named string) (string, error) {
	if named == "" {
		return "", nil
	}
	location, err := asked.Parse(named)
	if err != nil || location.Scheme != "http" && location.Scheme != "https" || location.Hostname() == "" ||
		location.User != nil || len(location.String()) > longestLocation {
		return "", errors.New(
			"HTTP 202 with an invalid Location: use a path, or an http:// or https:// address without user " +
				"and password",
		)
	}
	return location.String(), nil
}

// progressOf returns the progress that a hook reports, as one short line: a number is a percentage, a string is used as
// it is, and anything else is "".
func progressOf(raw json.RawMessage) string {
	var percent float64
	if err := json.Unmarshal(raw, &percent); err == nil && string(raw) != "null" {
		return autoscale.Number(percent) + " %"
	}
	return textOf(raw)
}

// textOf returns a string from a hook as one short line; "" for any other value.
func textOf(raw json.RawMessage) string {
	var text string
	_ = json.Unmarshal(raw, &text) // any other value is ignored
	return line(text)
}

// line returns a text as one short line that is safe for a terminal.
func line(text string) string {
	const more = "…"
	text = strings.TrimSpace(printable.Line(text))
	if len(text) <= longestProgress {
		return text
	}
	end := longestProgress - len(more)
	for !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end] + more
}

// pauseOf parses a Retry-After header, which is a number of seconds or a time; 0 for anything else.
func pauseOf(header string, now time.Time) time.Duration {
	pause := time.Duration(0)
	if seconds, err := strconv.ParseUint(header, 10, 31); err == nil {
		pause = time.Duration(seconds) * time.Second //nolint:gosec // it has 31 bits
	} else if at, err := http.ParseTime(header); err == nil {
		pause = at.Sub(now)
	}
	return min(max(pause, 0), longestPause)
}
