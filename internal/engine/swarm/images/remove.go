package images

import (
	"context"
	"time"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/events"
	"github.com/docker/docker/api/types/filters"
	"github.com/docker/docker/api/types/image"
)

// labelTaskService is the label with the service of a task's container.
const labelTaskService = "com.docker.swarm.service.id"

// lingerLimit is how long the containers of a service may outlive it.
const lingerLimit = 30 * time.Second

// removeImage removes a name from the image that a host has under it. A container that uses the image is a conflict,
// unless it is left over from a removed service: its host removes it soon after, and this waits for that.
func (e Images) removeImage(ctx context.Context, host imageHost, name string) error {
	remove := func() error {
		_, err := host.docker.ImageRemove(ctx, name, image.RemoveOptions{PruneChildren: true})
		return err
	}
	err := remove()
	if !cerrdefs.IsConflict(err) {
		return err
	}
	limited, cancel := context.WithTimeout(ctx, lingerLimit)
	defer cancel()
	// Subscribe before checking the containers, so that no end is missed.
	gone, failures := host.docker.Events(limited, events.ListOptions{Filters: filters.NewArgs(
		filters.Arg("type", string(events.ContainerEventType)), filters.Arg("event", string(events.ActionDestroy)),
	)})
	for {
		linger, err := e.onlyLingering(ctx, host, name)
		if err != nil {
			return err
		}
		if !linger {
			return remove()
		}
		select {
		case <-gone:
		case <-failures: //nolint:errcheck // whatever happened, only the image matters
			return remove()
		}
	}
}

// onlyLingering reports whether an image is used on a host only by containers of removed services.
func (e Images) onlyLingering(ctx context.Context, host imageHost, name string) (bool, error) {
	users, err := host.docker.ContainerList(ctx,
		container.ListOptions{All: true, Filters: filters.NewArgs(filters.Arg("ancestor", name))})
	if err != nil || len(users) == 0 {
		return false, err
	}
	services, err := e.Reads.Services(ctx)
	if err != nil {
		return false, err
	}
	there := map[string]bool{"": true} // a container without a service
	for _, service := range services {
		there[service.ID] = true
	}
	for _, user := range users {
		if there[user.Labels[labelTaskService]] {
			return false, nil
		}
	}
	return true, nil
}
