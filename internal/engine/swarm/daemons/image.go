package daemons

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"sync"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/swarm"
	"github.com/docker/docker/client"
	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/trainyard/terraform-provider-trainyard/internal/engine/swarm/dockerapi"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/swarm/image"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/swarm/images"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/swarm/spec"
)

// residentImage is the image of the controller and the agents.
type residentImage struct {
	// reference is what the hosts are told to run, and auth the credentials for its registry.
	reference, auth string
	// without are the nodes that don't have it, and can't pull it from a registry.
	without []string
	// load loads it onto the hosts that now lack it; nil for an image that hosts pull.
	load func(ctx context.Context) (without []string, err error)
}

// ensure checks that hosts have the image once services use it: until then, another cluster of the Swarm that used the
// same one may have removed it as unused.
func (i residentImage) ensure(ctx context.Context) error {
	if i.load == nil {
		return nil
	}
	_, err := i.load(ctx)
	return err
}

// residentImage returns the configured image, which the hosts pull, or else that of this program, which it loads onto
// the reachable hosts without any registry.
func (e Daemons) residentImage(ctx context.Context, now swarmState) (residentImage, error) {
	if given := e.Connection.Settings.Docker.ControllerImage; given != "" {
		return e.pulledImage(ctx, now, spec.KindController, given, "controller_image")
	}
	if why := e.NoResidents(); why != "" {
		return residentImage{}, errors.New(why)
	}
	img, err := e.program.Image()
	if err != nil {
		return residentImage{}, err
	}
	digest, err := image.ID(img)
	if err != nil {
		return residentImage{}, err
	}
	name := images.LocalName(images.ProgramRepository, digest)
	load := func(ctx context.Context) ([]string, error) { return loadProgram(ctx, now, img, name) }
	without, err := load(ctx)
	return residentImage{reference: name, without: without, load: load}, err
}

// pulledImage returns an image that all hosts pull, configured by the attribute, for a kind of resident. A tag is
// pinned to a digest, so that all hosts run the same image until the next apply. If neither the manager nor the
// registry has the image, that is an error: otherwise it would only show as a resident that never starts.
func (e Daemons) pulledImage(ctx context.Context, now swarmState, kind, name, attribute string) (residentImage, error) {
	auth, err := e.images.Auth(name)
	if err != nil {
		return residentImage{}, err
	}
	held, err := now.manager.ImageInspect(ctx, name)
	onManager := err == nil
	if err != nil && !cerrdefs.IsNotFound(err) {
		return residentImage{}, err
	}
	asGiven := residentImage{reference: name, auth: auth}
	if onManager && (images.Fixed(name) || !images.Published(name, held.RepoDigests)) {
		return asGiven, nil
	}
	pinned, err := e.images.Pin(ctx, now.manager, name, auth)
	live := now.services[spec.ResidentName(e.Cluster, kind)].Spec.TaskTemplate.ContainerSpec
	switch {
	case err == nil && images.Fixed(name):
		return asGiven, nil
	case err == nil:
		return residentImage{reference: pinned, auth: auth}, nil
	case live != nil && images.IsPinned(live.Image, name):
		return residentImage{reference: live.Image, auth: auth}, nil
	case onManager:
		return asGiven, nil
	}
	return residentImage{}, fmt.Errorf("image %q of Trainyard (%s) is not on the manager and can't be pulled: %w", name,
		attribute, err)
}

// loadProgram loads the image under its name onto the reachable hosts that lack it, and returns the nodes without it.
func loadProgram(ctx context.Context, now swarmState, img v1.Image, name string) (without []string, err error) {
	archive := sync.OnceValues(func() ([]byte, error) {
		var archive bytes.Buffer
		err := image.Write(&archive, name, img)
		return archive.Bytes(), err
	})
	var mu sync.Mutex
	managers := 0
	err = dockerapi.InParallel(ctx, now.nodes, func(ctx context.Context, node swarm.Node) error {
		reached, found := now.engines[node.ID]
		found = found && node.Status.State == swarm.NodeStateReady && runsProgram(node, runtime.GOARCH)
		var err error
		if found {
			err = images.LoadOnce(ctx, reached, name, archive)
		}
		mu.Lock()
		defer mu.Unlock()
		switch {
		case client.IsErrConnectionFailed(err):
			without = append(without, node.ID)
		case err != nil:
			return fmt.Errorf("loading Trainyard's own image onto host %s: %w", node.Description.Hostname, err)
		case !found:
			without = append(without, node.ID)
		case node.Spec.Role == swarm.NodeRoleManager:
			managers++
		}
		return nil
	})
	if err == nil && managers == 0 {
		err = fmt.Errorf("no reachable manager of the Swarm can run Trainyard's own image, which the controller runs "+
			"from and which is built for %s, as this program is; "+
			"if the managers have another platform, push an image for it to a registry, and set the provider's "+
			"docker.controller_image to it", runtime.GOARCH)
	}
	slices.Sort(without)
	return without, err
}

// architectures are the nodes' names for architectures that Go calls otherwise.
var architectures = map[string]string{"x86_64": "amd64", "aarch64": "arm64", "armv7l": "arm"}

// runsProgram reports whether a node has the architecture that a program is built for.
func runsProgram(node swarm.Node, architecture string) bool {
	its := node.Description.Platform.Architecture
	return cmp.Or(architectures[its], its) == architecture
}

// dropFormer removes the tag of the image that the cluster's residents ran from before, unless it is the current one or
// a service uses it. Any other image may have just been loaded for a cluster that has no services yet.
func (e Daemons) dropFormer(ctx context.Context, now swarmState, present string) {
	former := map[string]bool{}
	for _, kind := range []string{spec.KindController, spec.KindAgent} {
		before := now.services[spec.ResidentName(e.Cluster, kind)].PreviousSpec
		if before == nil || before.TaskTemplate.ContainerSpec == nil {
			continue
		}
		if name := before.TaskTemplate.ContainerSpec.Image; images.IsLocal(name) && name != present {
			former[name] = true
		}
	}
	if len(former) == 0 {
		return
	}
	// As late as possible, since another cluster may start to use it. If anything fails, the next apply tries again.
	services, err := dockerapi.Live(e.Connection).Services(ctx)
	if err != nil {
		return
	}
	for name := range images.Of(slices.Values(services)) {
		delete(former, name)
	}
	_ = dockerapi.InParallel(ctx, slices.Collect(maps.Values(now.engines)),
		func(ctx context.Context, docker client.APIClient) error {
			for name := range former {
				_ = images.Untag(ctx, docker, name)
			}
			return nil
		})
}
