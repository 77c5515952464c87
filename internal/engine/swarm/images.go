package swarm

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"sync"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/image"
	"github.com/docker/docker/api/types/swarm"
	"github.com/docker/docker/client"
	"github.com/docker/docker/pkg/jsonmessage"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/swarm/dockerapi"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/swarm/spec"
)

// wanted is an image that members run, and the hosts they are on.
type wanted struct {
	imageUse
	// hosts are the nodes' IDs, with the hosts' names.
	hosts map[string]string
	peers []peer
	// mends tells that a member is in that run already.
	mends bool
}

// peer is a service that runs an image of the same name by its ID on a node.
type peer struct {
	node string
	found
	// sameRun tells that it runs it in the same run of the group.
	sameRun bool
}

// peersOf returns the services of a group that run an image by its ID, as their hosts had it under the name, and are not about to be
// changed. To the controller, which brings no other image, those tell as well that it is about to start again.
func (e *Engine) peersOf(use imageUse, services map[string]swarm.Service, changing map[string]bool) []peer {
	var peers []peer
	for name, service := range services {
		id := spec.IdentityOf(service)
		if !spec.BelongsTo(service, e.cluster.Name) || id.Group != use.group || changing[name] && !e.connection.Settings.Controller {
			continue
		}
		r, _ := spec.RecordOf(service.Spec)
		if node := spec.PinnedNode(service.Spec); node != "" && r.Image == use.name && isID(r.Reference) {
			peers = append(peers, peer{node, found{id: r.Reference, content: r.Content}, id.Run == use.run})
		}
	}
	return peers
}

// resolve returns what the hosts are told to run for an image: their own IDs of it, so that no task asks a registry,
// else its name, which each host pulls. Reachable hosts without it pull it here, unless the policy forbids it. For the
// others, and for all hosts if the controller asks, what runs there counts: only an apply follows a tag.
func (e *Engine) resolve(ctx context.Context, w wanted, engines map[string]client.APIClient, in surroundings) (spec.References, error) {
	if w.policy == domain.PullAlways {
		return spec.References{Shared: w.name}, nil
	}
	var mu sync.Mutex
	all := map[string]found{} // by host
	for host, node := range in.Nodes {
		_, asked := engines[node]
		asked = asked && !e.connection.Settings.Controller
		for _, p := range w.peers {
			if p.node == node && (p.sameRun || !asked && w.hosts[node] != "" || isID(w.name)) {
				p.platform = in.view.Platform(node)
				all[host] = p.found
			}
		}
	}
	unreached := false
	err := dockerapi.InParallel(ctx, slices.Sorted(maps.Keys(w.hosts)), func(ctx context.Context, node string) error {
		host := w.hosts[node]
		reached, ok := engines[node]
		mu.Lock()
		_, told := all[host]
		unreached = unreached || !ok && !told
		mu.Unlock()
		if !ok || told && e.connection.Settings.Controller {
			return nil
		}
		held, err := e.present(ctx, reached, w)
		if err != nil {
			return fmt.Errorf("image %q on host %s: %w", w.name, host, err)
		}
		mu.Lock()
		defer mu.Unlock()
		all[host] = found{held.ID, held.Content, in.view.Platform(node), held.digests}
		return nil
	})
	if err != nil {
		return spec.References{}, err
	}
	if !fixed(w.name) {
		if err := agree(w.name, all); err != nil {
			return spec.References{}, err
		}
	}
	local := ""
	if unreached && isID(w.name) {
		if local, err = broughtAs(ctx, w.name, engines); err != nil {
			return spec.References{}, err
		}
	}
	r := refer(w.name, all, in.Nodes, unreached, local)
	if !isLocal(r.Shared) {
		return r, nil
	}
	return r, dockerapi.InParallel(ctx, slices.Collect(maps.Keys(w.hosts)), func(ctx context.Context, node string) error {
		if id, reached := r.Own[node], engines[node]; id != "" && reached != nil {
			return reached.ImageTag(ctx, id, r.Shared)
		}
		return nil // it was tagged when the image was brought to all hosts
	})
}

// present returns a host's image, which it pulls if it lacks it and may.
func (e *Engine) present(ctx context.Context, reached client.APIClient, w wanted) (HeldImage, error) {
	held, err := InspectImage(ctx, reached, w.name)
	if cerrdefs.IsNotFound(err) {
		switch {
		case isID(w.name):
			return HeldImage{}, errors.New("it is not there, and an ID can't be pulled: load the image onto the host, or bring it there by a trainyard_image")
		case w.policy == domain.PullNever:
			return HeldImage{}, fmt.Errorf("it is not there, and pull_policy is %q: load it onto the host, or let it be pulled", domain.PullNever)
		}
		if err := e.pull(ctx, reached, w.name); err != nil {
			return HeldImage{}, fmt.Errorf("it is not there, and can't be pulled: %w", err)
		}
		held, err = InspectImage(ctx, reached, w.name)
	}
	return held, err
}

// pull has a host fetch an image from its registry.
func (e *Engine) pull(ctx context.Context, reached client.APIClient, name string) error {
	auth, err := registries(e.connection.Settings.Docker.Registries).auth(name)
	if err != nil {
		return err
	}
	body, err := reached.ImagePull(ctx, name, image.PullOptions{RegistryAuth: auth})
	if err != nil {
		return err
	}
	defer body.Close()
	return done(body)
}

// load loads an archive onto a host. image is the name or content digest of what is in it: with containerd's store one
// of two concurrent loads fails, though the image is there.
func load(ctx context.Context, reached client.APIClient, archive io.Reader, image string) error {
	response, err := reached.ImageLoad(ctx, archive, client.ImageLoadWithQuiet(true))
	if err == nil {
		defer response.Body.Close()
		err = done(response.Body)
	}
	if err != nil {
		if _, missing := InspectImage(ctx, reached, image); missing == nil {
			return nil
		}
	}
	return err
}

// done reads what an Engine reports of its work to the end, and returns the error among it.
func done(body io.Reader) error {
	return messages(body, func(jsonmessage.JSONMessage) {})
}
