package images

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

// Surroundings are the hosts for which images are resolved, and what runs there.
type Surroundings struct {
	// IDs are the hosts' node IDs by host name.
	IDs   map[string]string
	Nodes dockerapi.Nodes
	// Services are those of the Swarm by name.
	Services map[string]swarm.Service

	// changing are the names of services that are about to be changed.
	changing map[string]bool
	// engines are the reachable Engines by node ID.
	engines map[string]client.APIClient
}

// takes reports whether a member may currently run on a host.
func (in Surroundings) takes(host string, placement domain.Placement) bool {
	node := in.Nodes[in.IDs[host]]
	for key, value := range placement.Labels {
		if has, found := node.Spec.Labels[key]; !found || has != value {
			return false
		}
	}
	return in.Nodes.Trouble(host, node.ID) == "" &&
		(len(placement.Hosts) == 0 || slices.Contains(placement.Hosts, host))
}

// use identifies an image that members of a group are to run in one of the group's runs.
type use struct {
	group, name string
	policy      domain.PullPolicy
	run         int
}

func useOf(spec domain.MemberSpec) use {
	return use{spec.Group, spec.Image, spec.Container.PullPolicy, spec.Run}
}

// wanted is an image that members run, and the hosts they are on.
type wanted struct {
	use
	// hosts maps node IDs to host names.
	hosts map[string]string
	// mends means that a member is in that run already, and keeps its image.
	mends bool
}

// Resolved is what hosts are told to run for the images of members.
type Resolved map[use]spec.References

// Of returns what hosts are told to run for a member's image.
func (r Resolved) Of(member domain.MemberSpec) spec.References { return r[useOf(member)] }

// Resolve ensures that hosts have their members' images, and returns what the hosts are told to run for each.
func (e Images) Resolve(ctx context.Context, specs []domain.MemberSpec, in Surroundings) (Resolved, error) {
	needed := map[use]*wanted{}
	in.changing = map[string]bool{}
	for _, member := range specs {
		w := needed[useOf(member)]
		if w == nil {
			w = &wanted{use: useOf(member), hosts: map[string]string{}}
			needed[w.use] = w
		}
		for host, id := range in.IDs {
			if host == member.Host || member.Scheduling == domain.SchedulingEngine && in.takes(host, member.Placement) {
				w.hosts[id] = host
			}
		}
		in.changing[spec.ServiceName(member)] = true
		live, found := in.Services[spec.ServiceName(member)]
		w.mends = w.mends || found && spec.IdentityOf(live).Run == member.Run
	}
	m, err := e.Connection.Manager(ctx)
	if err != nil {
		return nil, err
	}
	if in.engines, err = e.Engines(ctx, m); err != nil {
		return nil, err
	}
	resolved := Resolved{}
	var failures []error
	for use, w := range needed {
		references, err := e.resolve(ctx, *w, in)
		if err != nil {
			failures = append(failures, err)
		}
		resolved[use] = references
	}
	return resolved, errors.Join(failures...)
}

// peer is a service that runs an image of the same name by its ID on a node.
type peer struct {
	node string
	found
	// sameRun means that it does so in the same run of the group.
	sameRun bool
}

// peersOf returns the services of a group that run an image by its ID, as their hosts had it under the name, and are
// not about to be changed. For the controller, which brings no other image, those about to start again count too.
func (e Images) peersOf(w wanted, in Surroundings) []peer {
	if w.mends {
		return nil
	}
	var peers []peer
	for name, service := range in.Services {
		id := spec.IdentityOf(service)
		if !spec.BelongsTo(service, e.Cluster) || id.Group != w.group ||
			in.changing[name] && !e.Connection.Settings.Controller {
			continue
		}
		r, _ := spec.RecordOf(service.Spec)
		if node := spec.PinnedNode(service.Spec); node != "" && r.Image == w.name && isID(r.Reference) {
			peers = append(peers, peer{node, found{id: r.Reference, content: r.Content}, id.Run == w.run})
		}
	}
	return peers
}

// resolve returns what the hosts are told to run for an image: their own IDs of it, so that no task asks a registry,
// else its name, which each host pulls. Reachable hosts without it pull it here, unless the policy forbids it. For the
// others, and for all hosts if the controller asks, what runs there counts: only an apply follows a tag.
func (e Images) resolve(ctx context.Context, w wanted, in Surroundings) (spec.References, error) {
	if w.policy == domain.PullAlways {
		return spec.References{Shared: w.name}, nil
	}
	var mu sync.Mutex
	all := map[string]found{} // by host
	peers := e.peersOf(w, in)
	for host, node := range in.IDs {
		_, asked := in.engines[node]
		asked = asked && !e.Connection.Settings.Controller
		for _, p := range peers {
			if p.node == node && (p.sameRun || !asked && w.hosts[node] != "" || isID(w.name)) {
				p.platform = in.Nodes.Platform(node)
				all[host] = p.found
			}
		}
	}
	unreached := false
	err := dockerapi.InParallel(ctx, slices.Sorted(maps.Keys(w.hosts)), func(ctx context.Context, node string) error {
		host := w.hosts[node]
		reached, ok := in.engines[node]
		mu.Lock()
		_, known := all[host]
		unreached = unreached || !ok && !known
		mu.Unlock()
		if !ok || known && e.Connection.Settings.Controller {
			return nil
		}
		held, err := e.present(ctx, reached, w)
		if err != nil {
			return fmt.Errorf("image %q on host %s: %w", w.name, host, err)
		}
		mu.Lock()
		defer mu.Unlock()
		all[host] = found{held.ID, held.Content, in.Nodes.Platform(node), held.digests}
		return nil
	})
	if err != nil {
		return spec.References{}, err
	}
	if !Fixed(w.name) {
		if err := agree(w.name, all); err != nil {
			return spec.References{}, err
		}
	}
	local := ""
	if unreached && isID(w.name) {
		if local, err = broughtAs(ctx, w.name, in.engines); err != nil {
			return spec.References{}, err
		}
	}
	r := refer(w.name, all, in.IDs, unreached, local)
	if !IsLocal(r.Shared) {
		return r, nil
	}
	return r, dockerapi.InParallel(ctx, slices.Collect(maps.Keys(w.hosts)),
		func(ctx context.Context, node string) error {
			if id, reached := r.Own[node], in.engines[node]; id != "" && reached != nil {
				return reached.ImageTag(ctx, id, r.Shared)
			}
			return nil // it was tagged when the image was brought to all hosts
		})
}

// present returns a host's image, and pulls it if the host lacks it and may.
func (e Images) present(ctx context.Context, reached client.APIClient, w wanted) (HeldImage, error) {
	held, err := InspectImage(ctx, reached, w.name)
	if cerrdefs.IsNotFound(err) {
		switch {
		case isID(w.name):
			return HeldImage{}, errors.New(
				"not found, and an ID can't be pulled: load the image onto the host, or provide it with a " +
					"trainyard_image",
			)
		case w.policy == domain.PullNever:
			return HeldImage{},
				fmt.Errorf("not found, and pull_policy is %q: load it onto the host, or allow pulling it",
					domain.PullNever)
		}
		if err := e.pull(ctx, reached, w.name); err != nil {
			return HeldImage{}, fmt.Errorf("not found, and can't be pulled: %w", err)
		}
		held, err = InspectImage(ctx, reached, w.name)
	}
	return held, err
}

// pull makes a host pull an image from its registry.
func (e Images) pull(ctx context.Context, reached client.APIClient, name string) error {
	auth, err := e.Auth(name)
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

// done reads an Engine's progress messages to the end, and returns the error in them.
func done(body io.Reader) error {
	return messages(body, func(jsonmessage.JSONMessage) {})
}
