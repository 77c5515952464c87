//go:build linux

package containers

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/distribution/reference"
	"github.com/docker/docker/api/types/image"

	"github.com/trainyard/terraform-provider-trainyard/internal/dockerlogin"
	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
)

// Pulls reports whether an image has to be asked of its registry.
func (e *Engine) Pulls(ctx context.Context, name string, policy domain.PullPolicy) (pulls bool, err error) {
	if policy == domain.PullAlways {
		return true, nil
	}
	err = e.ask(ctx, func(ctx context.Context) error {
		_, err := e.client.ImageInspect(ctx, name)
		if pulls = cerrdefs.IsNotFound(err); pulls {
			return nil
		}
		return err
	})
	if pulls && policy == domain.PullNever {
		return false, &RefusedError{Code: refusedCode, Reason: fmt.Sprintf("there is no image %q on this host, and its pull policy is %q", name, policy)}
	}
	return pulls, err
}

// Pull brings an image from its registry, which takes as long as it takes.
func (e *Engine) Pull(ctx context.Context, name string) error {
	hint := ""
	refuse := func(reason string) error {
		return &RefusedError{Code: refusedCode, Reason: fmt.Sprintf("image %q can't be pulled: %s%s", name, reason, hint)}
	}
	named, err := reference.ParseNormalizedNamed(name)
	if err != nil {
		return refuse(err.Error())
	}
	auth, err := dockerlogin.Auth(named)
	if err != nil {
		return refuse(err.Error())
	}
	if registry := reference.Domain(named); auth == "" {
		hint = fmt.Sprintf("; if %s wants credentials, this host has none: sudo docker login %s", registry, registry)
	}
	progress, err := e.client.ImagePull(ctx, reference.TagNameOnly(named).String(), image.PullOptions{RegistryAuth: auth})
	if err != nil {
		err = e.explain(err)
		if refused, is := errors.AsType[*RefusedError](err); is {
			return refuse(refused.Reason)
		}
		return err
	}
	defer progress.Close()
	for messages := json.NewDecoder(progress); ; {
		var message struct {
			Error string `json:"error"`
		}
		err := messages.Decode(&message)
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return fmt.Errorf("%w to the end of the pull of image %q: %w", ErrAway, name, err)
		case message.Error != "":
			return refuse(message.Error)
		}
	}
}
