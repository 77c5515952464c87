package swarm

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

// HeldImage is an image as a host has it.
type HeldImage struct {
	// ID is what the host's Engine knows it by: the digest of its configuration where Docker's own store keeps it, of its manifest in containerd's.
	ID string
	// Content is the digest by which images are compared, see [imagesource.ContentDigest].
	Content string
	digests []string
	labels  map[string]string
}

// InspectImage returns the image that a host has by a name, an ID, or the digest of its content; cerrdefs.IsNotFound tells that there is none.
func InspectImage(ctx context.Context, docker client.APIClient, reference string) (HeldImage, error) {
	held, err := inspectKnown(ctx, docker, reference)
	if !isID(reference) || !cerrdefs.IsNotFound(err) {
		return held, err
	}
	for _, repository := range []string{sharedRepository, replacedRepository} {
		if held, localErr := inspectKnown(ctx, docker, localName(repository, reference)); !cerrdefs.IsNotFound(localErr) {
			return held, localErr
		}
	}
	// No Engine finds an image by its content, so that all are looked through.
	all, listErr := listImages(ctx, docker, image.ListOptions{})
	if listErr != nil {
		return HeldImage{}, listErr
	}
	for _, listed := range all {
		held, inspectErr := inspectKnown(ctx, docker, listed.ID)
		if inspectErr == nil && held.Content == reference {
			return held, nil
		}
		if inspectErr != nil && !cerrdefs.IsNotFound(inspectErr) { // that one went meanwhile
			err = inspectErr
		}
	}
	return HeldImage{}, err
}

// listTries is how often an Engine is asked for its images.
const listTries = 10

// listImages returns a host's images. With containerd's store a list fails with "not found" if one of them is removed
// meanwhile; that must not read as if the image that is looked for did not exist.
func listImages(ctx context.Context, docker client.APIClient, options image.ListOptions) ([]image.Summary, error) {
	var err error
	for range listTries {
		var images []image.Summary
		if images, err = docker.ImageList(ctx, options); !cerrdefs.IsNotFound(err) {
			return images, err
		}
	}
	return nil, fmt.Errorf("images keep being removed while they are listed: %v", err)
}

// inspectKnown returns the image that the Engine itself knows by a reference.
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
	held := HeldImage{ID: inspected.ID, digests: slices.DeleteFunc(inspected.RepoDigests, isLocal)}
	if c := inspected.Config; c != nil {
		held.labels = c.Labels
		config.Config = v1.Config{
			User: c.User, WorkingDir: c.WorkingDir, StopSignal: c.StopSignal, Env: c.Env, Entrypoint: c.Entrypoint, Cmd: c.Cmd,
			ExposedPorts: c.ExposedPorts, Volumes: c.Volumes, Labels: c.Labels,
		}
		if h := c.Healthcheck; h != nil {
			config.Config.Healthcheck = &v1.HealthConfig{Test: h.Test, Interval: h.Interval, Timeout: h.Timeout, StartPeriod: h.StartPeriod, Retries: h.Retries}
		}
	}
	held.Content = imagesource.ContentDigest(config)
	return held, nil
}
