package images

import (
	"context"
	"fmt"
	"testing"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/image"
	"github.com/docker/docker/client"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/swarm/swarmtest"
)

// busyEngine has one image. Listing its images fails a number of times, as if others were removed meanwhile.
type busyEngine struct {
	client.APIClient

	failures int
}

const busyID = "sha256:0000000000000000000000000000000000000000000000000000000000000001"

func (e *busyEngine) ImageList(context.Context, image.ListOptions) ([]image.Summary, error) {
	if e.failures > 0 {
		e.failures--
		return nil, fmt.Errorf("content digest sha256:2…: %w", cerrdefs.ErrNotFound)
	}
	return []image.Summary{{ID: busyID}}, nil
}

func (e *busyEngine) ImageInspect(
	_ context.Context, name string, _ ...client.ImageInspectOption,
) (image.InspectResponse, error) {
	if name != busyID {
		return image.InspectResponse{}, fmt.Errorf("no such image: %s: %w", name, cerrdefs.ErrNotFound)
	}
	return image.InspectResponse{ID: busyID, Os: "linux"}, nil
}

// TestInspectImageOfBusyEngine: an image is found while others are removed. If the list keeps failing, it isn't "not
// found".
func TestInspectImageOfBusyEngine(t *testing.T) {
	there, err := InspectImage(t.Context(), &busyEngine{}, busyID)
	swarmtest.Must(t, err)
	for _, failures := range []int{0, 1, 3} {
		held, err := InspectImage(t.Context(), &busyEngine{failures: failures}, there.Content)
		if err != nil || held.ID != busyID {
			t.Errorf("after %d failures: got %q, error %v, want %q", failures, held.ID, err, busyID)
		}
	}
	if _, err := InspectImage(t.Context(), &busyEngine{failures: 1000}, there.Content); err == nil ||
		cerrdefs.IsNotFound(err) {
		t.Errorf("a list that always fails: got error %v, want one that is not \"not found\"", err)
	}
	if _, err := InspectImage(t.Context(), &busyEngine{}, "sha256:another"); !cerrdefs.IsNotFound(err) {
		t.Errorf("an image that is not there: got error %v, want \"not found\"", err)
	}
}
