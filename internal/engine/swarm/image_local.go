package swarm

import (
	"context"
	"slices"
	"strings"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/filters"
	"github.com/docker/docker/api/types/image"
	"github.com/docker/docker/client"
)

// localRegistry is that of names which Trainyard gives images on hosts. Nobody can serve one at the broadcast address: an Engine that asks it
// fails at once, and runs the image that is there.
const localRegistry = "255.255.255.255/"

// The repositories of local names.
const (
	// programRepository is that of the image that residents run from.
	programRepository = localRegistry + "trainyard"
	// sharedRepository is that of images that hosts know by different IDs, in different image stores.
	sharedRepository = localRegistry + "shared"
	// replacedRepository is that of images that have lost their name to another. Without any, an Engine may remove them, though members run from them.
	replacedRepository = localRegistry + "replaced"
)

// localName is the name of an image in a repository of local names, by its digest.
func localName(repository, digest string) string {
	return repository + ":" + strings.TrimPrefix(digest, "sha256:")
}

// isLocal reports whether an image is named by [localName].
func isLocal(reference string) bool { return strings.HasPrefix(reference, localRegistry) }

// usedImages returns what the services of the Swarm run.
func (e *Engine) usedImages(ctx context.Context) (map[string]bool, error) {
	services, err := liveReads(e.connection).services(ctx)
	if err != nil {
		return nil, err
	}
	used := map[string]bool{}
	for _, service := range services {
		if spec := service.Spec.TaskTemplate.ContainerSpec; spec != nil {
			used[spec.Image] = true
		}
	}
	return used, nil
}

// dropReplaced takes their local names away from images of a host that have lost their own to others, unless a service runs them by their ID or
// such a name. What a container still uses stays until the next time.
func dropReplaced(ctx context.Context, docker client.APIClient, used map[string]bool) error {
	listed := filters.NewArgs(filters.Arg("reference", replacedRepository), filters.Arg("reference", sharedRepository))
	images, err := listImages(ctx, docker, image.ListOptions{Filters: listed})
	if err != nil {
		return err
	}
	for _, found := range images {
		names := slices.DeleteFunc(slices.Clone(found.RepoTags), func(name string) bool { return !isLocal(name) })
		replaced := slices.ContainsFunc(names, func(name string) bool { return strings.HasPrefix(name, replacedRepository+":") })
		if !replaced || used[found.ID] || slices.ContainsFunc(names, func(name string) bool { return used[name] }) {
			continue
		}
		for _, name := range names {
			if err := untag(ctx, docker, name); err != nil {
				return err
			}
		}
	}
	return nil
}

// untag takes a name away from an image of a host, and with its last one the image. One that a container uses keeps it.
func untag(ctx context.Context, docker client.APIClient, name string) error {
	_, err := docker.ImageRemove(ctx, name, image.RemoveOptions{PruneChildren: true})
	if cerrdefs.IsConflict(err) || cerrdefs.IsNotFound(err) {
		return nil
	}
	return err
}
