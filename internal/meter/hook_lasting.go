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

// The longest that one request of a hook may take that may be at work for long: the one that tells it something, and
// one that asks how it gets on.
const (
	longestTelling = domain.MaxHookTimeout
	longestLook    = 30 * time.Second
)

const (
	// longestPause bounds what a hook may ask for before it is asked again.
	longestPause = 10 * time.Minute
	// longestProgress bounds, in bytes, what is kept of what a hook says of its progress, and longestLocation the
	// address where it tells of it.
	longestProgress = 200
	longestLocation = 2000
)

// Reply is how a hook stands that may be at work for long.
type Reply struct {
	// Done tells that it has come to its end, and all is well.
	Done bool
	// Location is the address that tells how it gets on; where it is empty, the hook is told again.
	Location string
	// Progress is what it says of its progress: one short line.
	Progress string
	// After is how long it wants to be left alone; 0 where it does not say.
	After time.Duration
}

// TransientError is an error that may be over soon.
type TransientError struct {
	Err error
	// After is as in [Reply].
	After time.Duration
}

// Error is that of the error inside.
func (e *TransientError) Error() string { return e.Err.Error() }

// Unwrap returns the error inside.
func (e *TransientError) Unwrap() error { return e.Err }

// Tell tells a hook of something that is identified by an ID, which it finds in the header Idempotency-Key, and returns
// how it stands. Location is where it said last that it is to be asked how it gets on, and empty where it is to be
// told. A command runs until it has done. An error is a [TransientError] where it makes sense to try again.
func Tell(ctx context.Context, hook domain.ScalingHook, id, location string, told any) (Reply, error) {
	body, err := json.Marshal(told)
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
	address, limit := hook.URL, longestTelling
	if location != "" {
		address, limit = location, longestLook
	}
	ctx, cancel := context.WithTimeoutCause(ctx, limit, &TransientError{Err: fmt.Errorf("there was no answer within %s", limit)})
	defer cancel()
	var request *http.Request
	if location != "" {
		request, err = http.NewRequestWithContext(ctx, http.MethodGet, location, nil)
	} else {
		request, err = http.NewRequestWithContext(ctx, http.MethodPost, hook.URL, bytes.NewReader(body))
	}
	if err != nil {
		return Reply{}, fmt.Errorf("%s is no address", plainAddress(address))
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

// CallOff tells a hook that is at work that it need not go on.
func CallOff(ctx context.Context, location string) error {
	ctx, cancel := context.WithTimeout(ctx, longestLook)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodDelete, location, nil)
	if err != nil {
		return errors.New("it is no address")
	}
	_, err = answerTo(hooks, request)
	return err
}

// exchange sends a request, and returns what the answer says.
func exchange(request *http.Request) (Reply, error) {
	response, err := hooks.Do(request)
	if err != nil {
		if err = unreached(request.Context(), err); request.Context().Err() != nil {
			return Reply{}, err // which says itself whether to try again
		}
		return Reply{}, &TransientError{Err: err}
	}
	defer response.Body.Close()
	// The status tells how the hook stands: what of the body is cut off, or can't be read, is not missed.
	body, _ := io.ReadAll(io.LimitReader(response.Body, bounded.Answer))
	return standing(response, body, time.Now())
}

// standing is what an answer says of how a hook stands.
func standing(response *http.Response, body []byte, now time.Time) (Reply, error) {
	var said struct {
		Progress json.RawMessage `json:"progress"`
		Title    json.RawMessage `json:"title"`
		Detail   json.RawMessage `json:"detail"`
	}
	_ = json.Unmarshal(body, &said) // it need not be JSON
	request, after := response.Request, pauseOf(response.Header.Get("Retry-After"), now)
	looked := request.Method == http.MethodGet
	switch status := response.StatusCode; {
	case status == http.StatusAccepted:
		location, err := locationOf(request.URL, response.Header.Get("Location"))
		if looked && location == "" {
			location = request.URL.String()
		}
		return Reply{Location: location, Progress: progressOf(said.Progress), After: after}, err
	case status >= 200 && status <= 299, looked && status == http.StatusSeeOther:
		return Reply{Done: true}, nil
	case looked && (status == http.StatusNotFound || status == http.StatusGone):
		return Reply{}, nil // it knows nothing of it any more, such as one that was started again
	case status >= 300 && status <= 399:
		return Reply{}, fmt.Errorf("it answers %s, to %s, which is not followed: ask that address", line(response.Status), plainAddress(response.Header.Get("Location")))
	}
	err := fmt.Errorf("it answers %s", line(response.Status))
	for _, why := range []json.RawMessage{said.Detail, said.Title} {
		if text := textOf(why); text != "" {
			err = fmt.Errorf("%w: %s", err, text)
			break
		}
	}
	switch response.StatusCode {
	case http.StatusRequestTimeout, http.StatusTooEarly, http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return Reply{}, &TransientError{err, after}
	}
	return Reply{}, err
}

// locationOf returns the address that a hook names, which may be relative to the one that was asked; "" where it names
// none.
func locationOf(asked *url.URL, named string) (string, error) {
	if named == "" {
		return "", nil
	}
	location, err := asked.Parse(named)
	if err != nil || location.Scheme != "http" && location.Scheme != "https" || location.Hostname() == "" || location.User != nil || len(location.String()) > longestLocation {
		return "", errors.New("it answers 202 with a Location that can't be asked: an http:// or https:// address without user and password is allowed, or a path")
	}
	return location.String(), nil
}

// progressOf returns the progress that a hook reports, as one short line: a number is a percentage, a text stands for
// itself, and anything else is "".
func progressOf(said json.RawMessage) string {
	var percent float64
	if err := json.Unmarshal(said, &percent); err == nil && string(said) != "null" {
		return autoscale.Number(percent) + " %"
	}
	return textOf(said)
}

// textOf returns a text of a hook as one short line; "" where it is none.
func textOf(said json.RawMessage) string {
	var text string
	_ = json.Unmarshal(said, &text) // what is no text says nothing
	return line(text)
}

// line returns a text as one short line that a terminal may have.
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

// pauseOf returns what a header Retry-After asks for, which is a number of seconds or a time; 0 where it is neither.
func pauseOf(header string, now time.Time) time.Duration {
	pause := time.Duration(0)
	if seconds, err := strconv.ParseUint(header, 10, 31); err == nil {
		pause = time.Duration(seconds) * time.Second //nolint:gosec // of 31 bits
	} else if at, err := http.ParseTime(header); err == nil {
		pause = at.Sub(now)
	}
	return min(max(pause, 0), longestPause)
}
