package daemons

import (
	"context"
	"errors"
	"strings"
	"testing"

	cerrdefs "github.com/containerd/errdefs"
	dockerimage "github.com/docker/docker/api/types/image"
	"github.com/docker/docker/api/types/registry"
	"github.com/docker/docker/api/types/swarm"
	"github.com/docker/docker/client"
	"github.com/opencontainers/go-digest"

	"github.com/trainyard/terraform-provider-trainyard/internal/engine/swarm/dockerapi"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/swarm/images"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/swarm/members"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/swarm/spec"
)

// knowing is a manager that has an image, and knows what the registry has.
type knowing struct {
	client.APIClient
	// held are the digests under which it has the image; nil if it doesn't have it. published is the registry's; "" if
	// the registry does not answer.
	held      []string
	published digest.Digest
	asked     int
}

func (k *knowing) ImageInspect(
	context.Context, string, ...client.ImageInspectOption,
) (dockerimage.InspectResponse, error) {
	if k.held == nil {
		return dockerimage.InspectResponse{}, cerrdefs.ErrNotFound
	}
	return dockerimage.InspectResponse{RepoDigests: k.held}, nil
}

func (k *knowing) DistributionInspect(
	context.Context, string, string,
) (answer registry.DistributionInspect, err error) {
	k.asked++
	if k.published == "" {
		return answer, errors.New("no route to the registry")
	}
	answer.Descriptor.Digest = k.published
	return answer, nil
}

// TestResidentImageIsPinned: an apply pins a tag to a digest, so that all hosts run the same image until the next
// apply.
func TestResidentImageIsPinned(t *testing.T) {
	t.Setenv("DOCKER_CONFIG", t.TempDir())
	old, now := digest.FromString("old"), digest.FromString("now")
	const name = "registry.example.com:5000/trainyard:1"
	at := func(name string, d digest.Digest) string { return name + "@" + d.String() }
	pulled := []string{at("registry.example.com:5000/trainyard", old)}
	for what, test := range map[string]struct {
		name    string
		manager knowing
		// live is the running image.
		live, want string
		asked      int
	}{
		"published": {name, knowing{published: now}, "", at(name, now), 1},
		"published, and pulled before": {
			name, knowing{held: pulled, published: now}, at(name, old), at(name, now), 1,
		},
		"without a tag": {
			"ops/trainyard", knowing{published: now}, "", at("ops/trainyard:latest", now), 1,
		},
		"not pinned by an earlier version": {name, knowing{published: now}, name, at(name, now), 1},
		"registry away":                    {name, knowing{held: pulled}, at(name, old), at(name, old), 1},
		"registry away, manager lost it":   {name, knowing{}, at(name, old), at(name, old), 1},
		"registry away, another tag":       {name, knowing{held: pulled}, at(name+"0", old), name, 1},
		"registry away, never run":         {name, knowing{held: pulled}, "", name, 1},
		"nowhere": {
			name, knowing{}, at("registry.example.com:5000/trainyard:2", old), "", 1,
		},
		"on the manager alone": {name, knowing{held: []string{}, published: now}, name, name, 0},
		"of another name on the manager": {
			name, knowing{held: []string{at("elsewhere/trainyard", old)}, published: now}, "", name, 0,
		},
		"a digest": {at(name, old), knowing{published: now}, "", at(name, old), 1},
		"a digest that the manager has": {
			at(name, old), knowing{held: pulled, published: now}, at(name, now), at(name, old), 0,
		},
		"an ID":                               {now.String(), knowing{held: pulled}, "", now.String(), 0},
		"an ID that the manager doesn't have": {now.String(), knowing{}, "", "", 1},
	} {
		t.Run(what, func(t *testing.T) {
			in := dockerapi.Swarm{Cluster: "lab", Connection: &dockerapi.Connection{}}
			e := New(in, Program{}, images.New(in, images.NewTags()), members.Members{})
			found := swarmState{manager: &test.manager, services: map[string]swarm.Service{}}
			if test.live != "" {
				service := swarm.Service{Spec: swarm.ServiceSpec{
					TaskTemplate: swarm.TaskSpec{ContainerSpec: &swarm.ContainerSpec{Image: test.live}},
				}}
				found.services[spec.ResidentName("lab", spec.KindAgent)] = service
			}
			got, err := e.pulledImage(t.Context(), found, spec.KindAgent, test.name, "agent.image")
			if got.reference != test.want || (err == nil) != (test.want != "") || test.manager.asked != test.asked {
				t.Errorf("it runs %q (%v) after %d questions, want %q after %d", got.reference, err, test.manager.asked,
					test.want, test.asked)
			}
			if again, _ := e.pulledImage(t.Context(), found, spec.KindAgent, test.name,
				"agent.image"); again.reference != got.reference || test.manager.asked != test.asked {
				t.Errorf("asked again it is %q, after %d questions", again.reference, test.manager.asked)
			}
			if err != nil && !strings.Contains(err.Error(), "(agent.image) is not on the manager and can't be pulled") {
				t.Errorf("the error is %v", err)
			}
		})
	}
}

// TestRunsProgram: nodes name their architectures as their kernels do.
func TestRunsProgram(t *testing.T) {
	node := func(architecture string) swarm.Node {
		return swarm.Node{
			Description: swarm.NodeDescription{Platform: swarm.Platform{OS: "linux", Architecture: architecture}},
		}
	}
	for architecture, goes := range map[string]string{
		"x86_64": "amd64", "amd64": "amd64", "aarch64": "arm64", "armv7l": "arm", "riscv64": "riscv64",
	} {
		if is, want := runsProgram(node(architecture), "amd64"), goes == "amd64"; is != want {
			t.Errorf("a node of %s runs a program for amd64: %t, want %t", architecture, is, want)
		}
		if !runsProgram(node(architecture), goes) {
			t.Errorf("a node of %s does not run a program for %s", architecture, goes)
		}
	}
}
