package images

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"

	"github.com/docker/docker/api/types/build"
	"github.com/docker/docker/pkg/jsonmessage"

	"github.com/trainyard/terraform-provider-trainyard/internal/bounded"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
)

// load loads the archive onto hosts.
func (p *provision) load(ctx context.Context, hosts []imageHost) error {
	return p.supply(ctx, hosts, "loading", func(ctx context.Context, host imageHost) error {
		archive, err := p.spec.Archive()
		if err != nil {
			return err
		}
		defer archive.Close()
		return load(ctx, host.docker, archive, p.id)
	})
}

// pull makes hosts pull the image.
func (p *provision) pull(ctx context.Context, name string, hosts []imageHost) error {
	return p.supply(ctx, hosts, "pulling", func(ctx context.Context, host imageHost) error {
		return p.engine.pull(ctx, host.docker, name)
	})
}

// copy copies the image from a host that has it to others, through a file on this machine.
func (p *provision) copy(ctx context.Context, holders map[string]engine.Image, to []imageHost) error {
	for _, from := range p.hosts {
		if _, has := holders[from.name]; !has {
			continue
		}
		archive, size, err := saved(ctx, from, holders[from.name].ID)
		if err != nil {
			return fmt.Errorf("saving image %q from host %s: %w", p.spec.Name, from.name, err)
		}
		defer archive.Close()
		return p.supply(ctx, to, "loading", func(ctx context.Context, host imageHost) error {
			return load(ctx, host.docker, io.NewSectionReader(archive, 0, size), p.id)
		})
	}
	return fmt.Errorf("image %q was on a host at plan time, but is on none now: plan again to have it rebuilt",
		p.spec.Name)
}

// supply calls do for the hosts to bring them the image.
func (p *provision) supply(
	ctx context.Context, hosts []imageHost, how string, do func(ctx context.Context, host imageHost) error,
) error {
	_, err := onHosts(ctx, hosts, func(ctx context.Context, host imageHost) (none struct{}, found bool, err error) {
		if err := do(ctx, host); err != nil {
			return none, false, fmt.Errorf("%s image %q: %w", how, p.spec.Name, err)
		}
		return none, false, nil
	})
	return err
}

// temporary is a file that is removed at once, or when it is closed: Windows removes no open file.
type temporary struct{ *os.File }

func (t temporary) Close() error {
	err := t.File.Close()
	if removed := os.Remove(t.Name()); !errors.Is(removed, fs.ErrNotExist) {
		err = errors.Join(err, removed)
	}
	return err
}

// saved returns a docker-archive of an image that a host has, and its size.
func saved(ctx context.Context, from imageHost, id string) (archive temporary, size int64, err error) {
	content, err := from.docker.ImageSave(ctx, []string{id})
	if err != nil {
		return archive, 0, err
	}
	defer content.Close()
	if archive.File, err = os.CreateTemp("", "trainyard-image-"); err != nil {
		return archive, 0, err
	}
	_ = os.Remove(archive.Name()) // nothing is left if the provider is killed; on Windows, Close removes it
	if size, err = io.Copy(archive, content); err != nil {
		return archive, 0, errors.Join(err, archive.Close())
	}
	return archive, size, nil
}

// build builds an image on a host, without a name, and returns its content digest.
func (e Images) build(ctx context.Context, host imageHost, spec engine.ImageBuild) (string, error) {
	content, err := spec.Context()
	if err != nil {
		return "", err
	}
	defer content.Close()
	args := map[string]*string{}
	for name, value := range spec.Args {
		args[name] = &value
	}
	response, err := host.docker.ImageBuild(ctx, content, build.ImageBuildOptions{
		// Engines with BuildKit still have the classic builder, which needs no session beside the request.
		Version:     build.BuilderV1,
		Dockerfile:  spec.Dockerfile,
		Target:      spec.Target,
		BuildArgs:   args,
		Labels:      map[string]string{LabelCluster: e.Cluster, LabelSource: spec.Source},
		AuthConfigs: e.registries().Auths(spec.Bases),
		Remove:      true,
		ForceRemove: true,
	})
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	id, err := built(response.Body)
	if err != nil {
		return "", err
	}
	held, err := InspectImage(ctx, host.docker, id)
	return held.Content, err
}

// buildTail is how many lines of a failed build are shown.
const buildTail = 20

// built reads an Engine's build messages to the end, and returns the image's ID. An error includes the last lines.
func built(body io.Reader) (id string, err error) {
	output := &bounded.Tail{Most: bounded.Said}
	err = messages(body, func(message jsonmessage.JSONMessage) {
		var result build.Result
		if message.Aux != nil && json.Unmarshal(*message.Aux, &result) == nil && result.ID != "" {
			id = result.ID
		}
		_, _ = io.WriteString(output, message.Stream) // writing to it never fails
	})
	if err == nil && id == "" {
		err = errors.New("the build produced no image")
	}
	if err != nil {
		return "", fmt.Errorf("%w%s", err, tail(output.String()))
	}
	return id, nil
}

// messages reads an Engine's progress messages about an image to the end, and returns the error in them.
func messages(body io.Reader, each func(jsonmessage.JSONMessage)) error {
	for decoder := bounded.NewDecoder(body, bounded.Message); ; {
		var message jsonmessage.JSONMessage
		err := decoder.Decode(&message)
		switch _, tooMuch := errors.AsType[*bounded.Error](err); {
		case errors.Is(err, io.EOF):
			return nil
		case tooMuch:
			return fmt.Errorf("a message of the Engine has %w", err)
		case err != nil:
			return err
		case message.Error != nil:
			return message.Error
		}
		each(message)
	}
}

// tail returns the last lines of a build's output, to be shown below an error.
func tail(output string) string {
	lines := strings.Split(strings.TrimSpace(output), "\n")
	if lines[0] == "" {
		return ""
	}
	return "; last lines of output:\n" + strings.Join(lines[max(0, len(lines)-buildTail):], "\n")
}
