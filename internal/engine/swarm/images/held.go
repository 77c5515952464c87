package images

import (
	"context"
	"fmt"
	"slices"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/image"
	"github.com/docker/docker/client"
	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/trainyard/terraform-provider-trainyard/internal/imagesource"
)

// HeldImage is an image on a host.
type HeldImage struct {
	// ID is the host's own: the configuration's digest in Docker's image store, the manifest's in containerd's.
	ID string
	// Content is the digest by which images are compared, see [imagesource.ContentDigest].
	Content string
	// digests are the registry digests, as name@sha256:….
	digests []string
	labels  map[string]string
}

// InspectImage returns a host's image with this name, ID or content digest. If there is none, the error satisfies
// cerrdefs.IsNotFound.
func InspectImage(ctx context.Context, docker client.APIClient, reference string) (HeldImage, error) {
	held, err := inspectKnown(ctx, docker, reference)
	if !isID(reference) || !cerrdefs.IsNotFound(err) {
		return held, err
	}
	for _, repository := range []string{SharedRepository, ReplacedRepository} {
		held, localErr := inspectKnown(ctx, docker, LocalName(repository, reference))
		if !cerrdefs.IsNotFound(localErr) {
			return held, localErr
		}
	}
	// Engines can't look up an image by its content.
	all, listErr := ListImages(ctx, docker, image.ListOptions{})
	if listErr != nil {
		return HeldImage{}, listErr
	}
	for _, listed := range all {
		held, inspectErr := inspectKnown(ctx, docker, listed.ID)
		if inspectErr == nil && held.Content == reference {
			return held, nil
		}
		if inspectErr != nil && !cerrdefs.IsNotFound(inspectErr) { // a missing one was removed meanwhile
			err = inspectErr
		}
	}
	return HeldImage{}, err
}

// listTries bounds how often a failed list of images is repeated.
const listTries = 10

// ListImages returns a host's images. With containerd's store, listing fails with "not found" if an image is removed
// meanwhile. That must not look as if what the caller wants were missing.
func ListImages(ctx context.Context, docker client.APIClient, options image.ListOptions) ([]image.Summary, error) {
	var err error
	for range listTries {
		var images []image.Summary
		if images, err = docker.ImageList(ctx, options); !cerrdefs.IsNotFound(err) {
			return images, err
		}
	}
	return nil, fmt.Errorf("images keep being removed while they are listed: %s", err.Error())
}

// inspectKnown returns the image that the Engine itself finds by a reference.
func inspectKnown(ctx context.Context, docker client.APIClient, reference string) (HeldImage, error) {
	inspected, err := docker.ImageInspect(ctx, reference)
	if err != nil {
		return HeldImage{}, err
	}
	config := v1.ConfigFile{OS: inspected.Os, Architecture: inspected.Architecture}
	for _, layer := range inspected.RootFS.Layers {
		hash, err := v1.NewHash(layer)
		if err != nil {
			return HeldImage{}, fmt.Errorf("image %s: %w", reference, err)
		}
		config.RootFS.DiffIDs = append(config.RootFS.DiffIDs, hash)
	}
	held := HeldImage{ID: inspected.ID, digests: slices.DeleteFunc(inspected.RepoDigests, IsLocal)}
	if c := inspected.Config; c != nil {
		held.labels = c.Labels
		config.Config = v1.Config{
			User: c.User, WorkingDir: c.WorkingDir, StopSignal: c.StopSignal,
			Env: c.Env, Entrypoint: c.Entrypoint, Cmd: c.Cmd, ExposedPorts: c.ExposedPorts, Volumes: c.Volumes,
			Labels: c.Labels,
		}
		if h := c.Healthcheck; h != nil {
			config.Config.Healthcheck = &v1.HealthConfig{
				Test: h.Test, Interval: h.Interval, Timeout: h.Timeout, StartPeriod: h.StartPeriod, Retries: h.Retries,
			}
		}
	}
	held.Content = imagesource.ContentDigest(config)
	return held, nil
}
