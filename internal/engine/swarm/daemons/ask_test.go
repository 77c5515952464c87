package daemons

import (
	"context"
	"errors"
	"testing"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/client"

	"github.com/trainyard/terraform-provider-trainyard/internal/agent/telemetry"
)

// agentContainer is an Engine with one container, which reports the program that is executed in it.
type agentContainer struct {
	client.APIClient

	path string
	run  []string
}

func (c *agentContainer) ContainerInspect(context.Context, string) (container.InspectResponse, error) {
	return container.InspectResponse{ContainerJSONBase: &container.ContainerJSONBase{Path: c.path}}, nil
}

func (c *agentContainer) ContainerExecCreate(
	_ context.Context, _ string, options container.ExecOptions,
) (container.ExecCreateResponse, error) {
	c.run = options.Cmd
	return container.ExecCreateResponse{}, errors.ErrUnsupported
}

// TestAskThroughOwnImage: the queried agent is the program of its container, which may be at any path in a user's
// image.
func TestAskThroughOwnImage(t *testing.T) {
	for _, path := range []string{ProgramPath, "/usr/local/bin/trainyard-agent"} {
		reached := &agentContainer{path: path}
		if _, err := askThrough(t.Context(), reached, "id", nil, telemetry.Query{}); !errors.Is(err,
			errors.ErrUnsupported) || len(reached.run) < 2 || reached.run[0] != path || reached.run[1] != "agent" {
			t.Errorf("in a container of %s, %q was run: %v", path, reached.run, err)
		}
	}
}
