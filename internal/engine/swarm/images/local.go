package images

import (
	"context"
	"iter"
	"slices"
	"strings"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/filters"
	"github.com/docker/docker/api/types/image"
	"github.com/docker/docker/api/types/swarm"
	"github.com/docker/docker/client"

	"github.com/trainyard/terraform-provider-trainyard/internal/engine/swarm/dockerapi"
)

// localRegistry is the registry of local tags. A pull from the broadcast address fails at once, so an Engine runs the
// image that it has, and nobody can serve a forged one.
const localRegistry = "255.255.255.255/"

// The repositories of local tags.
const (
	// ProgramRepository has the image of residents.
	ProgramRepository = localRegistry + "trainyard"
	// SharedRepository has images by content digest, for hosts that have different IDs for them.
	SharedRepository = localRegistry + "shared"
	// ReplacedRepository has images whose tag moved to another one: Engine 26 deletes an untagged image that members
	// run from.
	ReplacedRepository = localRegistry + "replaced"
)

// LocalName returns the local tag of a digest.
func LocalName(repository, digest string) string {
	return repository + ":" + strings.TrimPrefix(digest, "sha256:")
}

// IsLocal reports whether a reference is a local tag.
func IsLocal(reference string) bool { return strings.HasPrefix(reference, localRegistry) }

// usedImages returns the images that the services of the Swarm run.
func (e Images) usedImages(ctx context.Context) (map[string]bool, error) {
	services, err := dockerapi.Live(e.Connection).Services(ctx)
	return Of(slices.Values(services)), err
}

// Of returns the images that services run.
func Of(services iter.Seq[swarm.Service]) map[string]bool {
	used := map[string]bool{}
	for service := range services {
		if spec := service.Spec.TaskTemplate.ContainerSpec; spec != nil {
			used[spec.Image] = true
		}
	}
	return used
}

// dropReplaced removes the local tags of a host's replaced images, unless a service uses the image by its ID or such a
// tag. An image that a container uses stays until the next time.
func dropReplaced(ctx context.Context, docker client.APIClient, used map[string]bool) error {
	listed := filters.NewArgs(filters.Arg("reference", ReplacedRepository), filters.Arg("reference", SharedRepository))
	images, err := ListImages(ctx, docker, image.ListOptions{Filters: listed})
	if err != nil {
		return err
	}
	for _, found := range images {
		names := slices.DeleteFunc(slices.Clone(found.RepoTags), func(name string) bool { return !IsLocal(name) })
		replaced := slices.ContainsFunc(names,
			func(name string) bool { return strings.HasPrefix(name, ReplacedRepository+":") })
		if !replaced || used[found.ID] || slices.ContainsFunc(names, func(name string) bool { return used[name] }) {
			continue
		}
		for _, name := range names {
			if err := Untag(ctx, docker, name); err != nil {
				return err
			}
		}
	}
	return nil
}

// Untag removes a tag on a host, and the image with its last tag. A tag that a container needs stays.
func Untag(ctx context.Context, docker client.APIClient, name string) error {
	_, err := docker.ImageRemove(ctx, name, image.RemoveOptions{PruneChildren: true})
	if cerrdefs.IsConflict(err) || cerrdefs.IsNotFound(err) {
		return nil
	}
	return err
}
