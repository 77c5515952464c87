package members

import (
	"context"
	"errors"
	"fmt"
	"testing"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/image"
	"github.com/docker/docker/api/types/mount"
	"github.com/docker/docker/api/types/network"
	"github.com/docker/docker/client"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

// lossyEngine is an Engine on which the calls that have an error fail, because somebody removes what is unused.
type lossyEngine struct {
	client.APIClient

	list, create, stat, inspect, remove error
	removed                             container.RemoveOptions
}

func (e *lossyEngine) ImageList(context.Context, image.ListOptions) ([]image.Summary, error) {
	return []image.Summary{{ID: "sha256:1"}}, e.list
}

func (e *lossyEngine) ContainerCreate(
	context.Context, *container.Config, *container.HostConfig, *network.NetworkingConfig, *ocispec.Platform, string,
) (container.CreateResponse, error) {
	return container.CreateResponse{ID: "1"}, e.create
}

func (e *lossyEngine) ContainerStatPath(context.Context, string, string) (container.PathStat, error) {
	return container.PathStat{}, e.stat
}

func (e *lossyEngine) ContainerInspect(context.Context, string) (container.InspectResponse, error) {
	return container.InspectResponse{}, e.inspect
}

func (e *lossyEngine) ContainerRemove(_ context.Context, _ string, options container.RemoveOptions) error {
	e.removed = options
	return e.remove
}

// TestExists: a folder is only missing if it is the folder that wasn't found, not the container or image to look with.
// The container goes with the volumes that its image declares.
func TestExists(t *testing.T) {
	gone := fmt.Errorf("no such thing: %w", cerrdefs.ErrNotFound)
	away := client.ErrorConnectionFailed("tcp://gpu1") //nolint:staticcheck // what the client returns has no other name
	for name, c := range map[string]struct {
		engine lossyEngine
		found  bool
		fails  bool
	}{
		"there":                      {lossyEngine{}, true, false},
		"missing":                    {lossyEngine{stat: gone}, false, false},
		"images are removed":         {lossyEngine{list: gone}, false, true},
		"its image is removed":       {lossyEngine{create: gone}, false, true},
		"the container is removed":   {lossyEngine{stat: gone, inspect: gone, remove: gone}, false, true},
		"it is removed after a look": {lossyEngine{remove: gone}, true, false},
		"away":                       {lossyEngine{create: away}, false, true},
		"away after a look":          {lossyEngine{stat: gone, inspect: away}, false, true},
	} {
		t.Run(name, func(t *testing.T) {
			in := mount.Mount{Type: mount.TypeVolume, Source: "results"}
			found, err := exists(t.Context(), &c.engine, in, "/results")
			if found != c.found || (err != nil) != c.fails || cerrdefs.IsNotFound(err) {
				t.Errorf("found: %v, error %v", found, err)
			}
			isAway := errors.Is(c.engine.create, away) || errors.Is(c.engine.inspect, away)
			if isAway && !client.IsErrConnectionFailed(err) {
				t.Errorf("the error hides that the Engine can't be reached: %v", err)
			}
			if created := c.engine.list == nil && c.engine.create == nil; created && !c.engine.removed.RemoveVolumes {
				t.Error("the container's volumes stay")
			}
		})
	}
}
