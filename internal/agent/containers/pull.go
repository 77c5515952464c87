//go:build linux

package containers

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/distribution/reference"
	"github.com/docker/docker/api/types/image"

	"github.com/trainyard/terraform-provider-trainyard/internal/dockerlogin"
	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
)

// Pulls reports whether an image has to be pulled from its registry.
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
		return false, &RefusedError{
			Code:   refusedCode,
			Reason: fmt.Sprintf("image %q not found on this host, and its pull policy is %q", name, policy),
		}
	}
	return pulls, err
}

// Pull pulls an image, without a time limit. It uses the credentials brought for that, encoded as the Engine takes
// them; if they are rejected or there are none, it uses those of docker login on this host.
func (e *Engine) Pull(ctx context.Context, name, brought string) error {
	named, err := reference.ParseNormalizedNamed(name)
	if err != nil {
		return cannotPull(name, err.Error())
	}
	tagged, host := reference.TagNameOnly(named).String(), reference.Domain(named)
	var reasons []string
	if brought != "" {
		reason, err := e.pull(ctx, tagged, brought)
		if err != nil || reason == "" {
			return err
		}
		reasons = append(reasons, fmt.Sprintf("with the credentials that Terraform brought: %s; if these are wrong, "+
			"give the provider others for %q in docker.registries and apply again", reason, host))
	}
	own, err := dockerlogin.Registries(nil).Auth(name)
	switch {
	case err != nil:
		reasons = append(reasons, err.Error())
	case own != "" || brought == "":
		reason, err := e.pull(ctx, tagged, own)
		if err != nil || reason == "" {
			return err
		}
		if own != "" {
			reason = fmt.Sprintf(
				"with the credentials of docker login on this host: %s; if these are wrong: sudo docker login %s",
				reason, host,
			)
		} else {
			reason = fmt.Sprintf("%s; if %[2]s wants credentials, there are none: give the provider some for %[2]q "+
				"in docker.registries and apply again, or log in on this host: sudo docker login %[2]s", reason, host)
		}
		reasons = append(reasons, reason)
	}
	return cannotPull(name, strings.Join(reasons, "; "))
}

func cannotPull(name, reason string) error {
	return &RefusedError{Code: refusedCode, Reason: fmt.Sprintf("image %q can't be pulled: %s", name, reason)}
}

// pull pulls an image with encoded credentials. reason is why the Engine can't; empty on success.
func (e *Engine) pull(ctx context.Context, name, auth string) (reason string, err error) {
	progress, err := e.client.ImagePull(ctx, name, image.PullOptions{RegistryAuth: auth})
	if err != nil {
		err = e.explain(err)
		if refused, is := errors.AsType[*RefusedError](err); is {
			return refused.Reason, nil
		}
		return "", err
	}
	defer progress.Close()
	for messages := json.NewDecoder(progress); ; {
		var message struct {
			Error string `json:"error"`
		}
		err := messages.Decode(&message)
		switch {
		case errors.Is(err, io.EOF):
			return "", nil
		case err != nil:
			return "", fmt.Errorf("pulling image %q: %w: %w", name, ErrAway, err)
		case message.Error != "":
			return message.Error, nil
		}
	}
}
