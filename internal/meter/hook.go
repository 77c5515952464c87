package meter

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
)

// hooks asks the addresses of hooks. Some of them take minutes, and others are not to wait for them.
var hooks = newClient(0)

// Call asks a hook a question, which is sent to its address, or given to its command, as JSON, and returns the answer:
// the body, or what the command prints, 1 MiB at most. An answer that does not say that all is well (a status other
// than 2xx, another exit code than 0), or that takes longer than the hook's limit, is an error.
func Call(ctx context.Context, hook domain.ScalingHook, question any) ([]byte, error) {
	asked, err := json.Marshal(question)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, hook.Limit(), fmt.Errorf("there was no answer within %s", hook.Limit()))
	defer cancel()
	switch {
	case len(hook.Command) > 0:
		answer, err := run(ctx, hook.Command, asked)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", hook.Command[0], err)
		}
		return answer, nil
	case hook.URL == "":
		return nil, errors.New("there is nobody to ask: the hook has neither url nor command")
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, hook.URL, bytes.NewReader(asked))
	if err != nil {
		return nil, fmt.Errorf("%s is no address", plainAddress(hook.URL))
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Accept", "application/json")
	answer, err := answerTo(hooks, request)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", plainAddress(hook.URL), err)
	}
	return answer, nil
}
