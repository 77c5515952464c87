package meter

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/tidwall/gjson"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
)

// askQueue requests the length of a queue.
func (r *reading) askQueue(s domain.QueueSource, truth bool) func() (value, error) {
	switch {
	case s.HTTP != nil:
		answer := r.askEndpoint(s.HTTP.URL)
		return func() (value, error) {
			body, err := answer.wait()
			if err != nil {
				return value{}, fmt.Errorf("%s: %w", plainAddress(s.HTTP.URL), err)
			}
			length, err := lengthAt(body, s.HTTP.Path, truth)
			if err != nil {
				return value{}, fmt.Errorf("the answer of %s: %w", plainAddress(s.HTTP.URL), err)
			}
			return value{length, r.now}, nil
		}
	case s.Redis != nil:
		list := r.askRedis(*s.Redis)
		return func() (value, error) {
			length, err := list()
			if err != nil {
				return value{}, fmt.Errorf("the Redis at %s: %w", s.Redis.Address, err)
			}
			return value{float64(length), r.now}, nil
		}
	case len(s.Command) > 0:
		output := r.askCommand(s.Command)
		return func() (value, error) {
			printed, err := output.wait()
			if err != nil {
				return value{}, fmt.Errorf("%s: %w", s.Command[0], err)
			}
			length, err := printedLength(printed)
			if err != nil {
				return value{}, fmt.Errorf("%s: %w", s.Command[0], err)
			}
			return value{length, r.now}, nil
		}
	}
	return func() (value, error) { return value{}, errors.New("the queue has no source") }
}

// shownBytes is how many bytes of an invalid answer are shown.
const shownBytes = 100

// lengthAt returns the queue length at a path of a JSON body, in GJSON syntax; the whole body for an empty path. With
// truth, true is 1 and false is 0.
func lengthAt(body []byte, path string, truth bool) (float64, error) {
	if !json.Valid(body) { // GJSON expects valid JSON, and its own check has no depth limit
		return 0, fmt.Errorf("not valid JSON: %.*q", shownBytes, body)
	}
	found := gjson.ParseBytes(body)
	where := "it"
	if path != "" {
		found, where = found.Get(path), fmt.Sprintf("the value at %q", path)
	}
	switch {
	case !found.Exists():
		return 0, fmt.Errorf("no value at %q", path)
	case truth && found.Type == gjson.True:
		return 1, nil
	case truth && found.Type == gjson.False:
		return 0, nil
	case found.Type != gjson.Number || !isAmount(found.Num):
		return 0, fmt.Errorf("%s is %.*q; it must be a number of 0 or more", where, shownBytes, found.Raw)
	}
	return found.Num, nil
}

// printedLength returns the queue length that a command has printed.
func printedLength(output []byte) (float64, error) {
	text := bytes.TrimSpace(output)
	found := gjson.ParseBytes(text)
	if !json.Valid(text) || found.Type != gjson.Number || !isAmount(found.Num) {
		return 0, fmt.Errorf("it printed %.*q; expected a number of 0 or more", shownBytes, text)
	}
	return found.Num, nil
}

// isAmount reports whether a number can be a queue length, a load or a latency: not negative,
// and within the exact range.
func isAmount(number float64) bool { return number >= 0 && number <= 1<<53 }
