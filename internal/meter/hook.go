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

// hooks is the client for hooks. It has no limit, as some hooks take minutes and others should not wait for them.
var hooks = newClient(0)

// Call sends a question to a hook as JSON, to its URL or its command's standard input. It returns the answer, the body
// or the standard output, of at most 1 MiB. A status other than 2xx, an exit code other than 0, or an answer that takes
// longer than the hook's limit is an error.
func Call(ctx context.Context, hook domain.ScalingHook, question any) ([]byte, error) {
	return call(ctx, hook, question, plainAddress)
}

// CallSecret calls a hook whose URL is a secret, such as a chat's webhook, as [Call] does. Its errors name only the
// server.
func CallSecret(ctx context.Context, hook domain.ScalingHook, message any) error {
	_, err := call(ctx, hook, message, serverAddress)
	return err
}

func call(
	ctx context.Context, hook domain.ScalingHook, question any, name func(address string) string,
) ([]byte, error) {
	asked, err := json.Marshal(question)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, hook.Limit(), fmt.Errorf("no answer within %s", hook.Limit()))
	defer cancel()
	switch {
	case len(hook.Command) > 0:
		answer, err := run(ctx, hook.Command, asked)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", hook.Command[0], err)
		}
		return answer, nil
	case hook.URL == "":
		return nil, errors.New("the hook has neither url nor command")
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, hook.URL, bytes.NewReader(asked))
	if err != nil {
		return nil, fmt.Errorf("%s is not valid", name(hook.URL))
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Accept", "application/json")
	answer, err := answerTo(hooks, request, name)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name(hook.URL), err)
	}
	return answer, nil
}
