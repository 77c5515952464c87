package swarm

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/distribution/reference"
	"github.com/docker/docker/api/types/image"
	"github.com/docker/docker/api/types/swarm"
	"github.com/docker/docker/client"
	"github.com/docker/docker/pkg/jsonmessage"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
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
		id := identityOf(service)
		if !ours(service, e.cluster.Name) || id.group != use.group || changing[name] && !e.connection.settings.Controller {
			continue
		}
		r, _ := recordOf(service.Spec)
		if node := pinnedTo(service.Spec); node != "" && r.Image == use.name && isID(r.Reference) {
			peers = append(peers, peer{node, found{id: r.Reference, content: r.Content}, id.run == use.run})
		}
	}
	return peers
}

// references is what hosts are told to run for an image.
type references struct {
	// shared is what all hosts know it by, and own what single nodes do, by ID; a node without its own is told the shared one.
	shared string
	own    map[string]string
	// content is the digest of the image's content, where all hosts are known to have the same.
	content string
}

// on is what a node is told to run; the nodes of a service that the Swarm places are told the same.
func (r references) on(node string) string {
	if own, found := r.own[node]; found {
		return own
	}
	return r.shared
}

// resolve returns what the hosts are told to run for an image: the ID that each has it by, which keeps a Swarm from asking a
// registry for each task, else the name as it is, which has each host pull it. Hosts that can be reached and do not
// have it pull it here, unless the policy forbids it; what others have is told by what runs there. To the controller that tells of every host: the
// name may stand for another image by now, which an apply is to bring.
func (e *Engine) resolve(ctx context.Context, w wanted, engines map[string]client.APIClient, in surroundings) (references, error) {
	if w.policy == domain.PullAlways {
		return references{shared: w.name}, nil
	}
	var mu sync.Mutex
	all := map[string]found{} // by host
	for host, node := range in.nodes {
		_, asked := engines[node]
		asked = asked && !e.connection.settings.Controller
		for _, p := range w.peers {
			if p.node == node && (p.sameRun || !asked && w.hosts[node] != "" || isID(w.name)) {
				p.platform = in.view.platform(node)
				all[host] = p.found
			}
		}
	}
	unreached := false
	err := inParallel(ctx, slices.Sorted(maps.Keys(w.hosts)), func(ctx context.Context, node string) error {
		host := w.hosts[node]
		reached, ok := engines[node]
		mu.Lock()
		_, told := all[host]
		unreached = unreached || !ok && !told
		mu.Unlock()
		if !ok || told && e.connection.settings.Controller {
			return nil
		}
		held, err := e.present(ctx, reached, w)
		if err != nil {
			return fmt.Errorf("image %q on host %s: %w", w.name, host, err)
		}
		mu.Lock()
		defer mu.Unlock()
		all[host] = found{held.ID, held.Content, in.view.platform(node), held.digests}
		return nil
	})
	if err != nil {
		return references{}, err
	}
	if !fixed(w.name) {
		if err := agree(w.name, all); err != nil {
			return references{}, err
		}
	}
	local := ""
	if unreached {
		local = e.localNameOf(ctx, w.name, engines)
	}
	r := refer(w.name, all, in.nodes, unreached, local)
	if !isLocal(r.shared) {
		return r, nil
	}
	return r, inParallel(ctx, slices.Collect(maps.Keys(w.hosts)), func(ctx context.Context, node string) error {
		if id, reached := r.own[node], engines[node]; id != "" && reached != nil {
			return reached.ImageTag(ctx, id, r.shared)
		}
		return nil // as it was tagged when the image was brought to all hosts
	})
}

// isID tells whether an image is named by its ID.
func isID(name string) bool { return strings.HasPrefix(name, "sha256:") }

// fixed tells whether an image is named by its ID or its digest: it can be no other.
func fixed(name string) bool { return isID(name) || digested(name) }

// digested tells whether an image is named by the digest that its registry has it by.
func digested(name string) bool {
	parsed, err := reference.ParseNormalizedNamed(name)
	if err != nil {
		return false
	}
	_, is := parsed.(reference.Digested)
	return is
}

// found is an image that a host has: the host's ID of it, the digest of its content where that is known, the host's platform, and the names
// with digests by which the image came from registries.
type found struct {
	id, content, platform string
	digests               []string
}

// is reports whether two hosts have the same image.
func (f found) is(other found) bool {
	return f.id == other.id || f.content != "" && f.content == other.content
}

// present returns the image that a host has, once it has it.
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

// agree returns an error where hosts of the same platform have different images under a name.
func agree(name string, all map[string]found) error {
	byPlatform := map[string]string{}
	for _, host := range slices.Sorted(maps.Keys(all)) {
		f := all[host]
		other, known := byPlatform[f.platform]
		if !known {
			byPlatform[f.platform] = host
			continue
		}
		if !all[other].is(f) {
			return fmt.Errorf("image %q is %s on host %s and %s on host %s: remove it where it is out of date, or name it by its digest or ID", name, all[other].id, other, f.id, host)
		}
	}
	return nil
}

// localNameOf returns the local name that all hosts have an image by which was brought to all of them, as the Engines that can be reached tell;
// empty where they have none.
func (e *Engine) localNameOf(ctx context.Context, image string, engines map[string]client.APIClient) string {
	if !isID(image) {
		return ""
	}
	name := localName(sharedRepository, image)
	for _, node := range slices.Sorted(maps.Keys(engines)) {
		if _, err := engines[node].ImageInspect(ctx, name); err == nil {
			return name
		}
	}
	return ""
}

// refer returns what hosts are told to run, by what they have, and whether there are others that could not be asked. Those have an image that
// was brought to all hosts by its local name, if it has one; else they pull it by its name, or have it by the ID that the others have it by.
func refer(name string, all map[string]found, nodes map[string]string, unreached bool, local string) references {
	ids, contents := map[string]bool{}, map[string]bool{}
	r := references{shared: name, own: map[string]string{}}
	for host, f := range all {
		ids[f.id], contents[f.content] = true, true
		r.own[nodes[host]] = f.id
	}
	if len(contents) == 1 {
		r.content = slices.Collect(maps.Keys(contents))[0]
	}
	switch {
	case digested(name), unreached && !isID(name):
		r.own = nil
	case local != "":
		r.shared = local
	case len(ids) == 1:
		r.shared = slices.Collect(maps.Keys(ids))[0]
	case r.content != "":
		r.shared = cmp.Or(commonDigest(all), localName(sharedRepository, r.content))
	}
	return r
}

// commonDigest returns a name with a digest that all hosts have an image by; empty where there is none.
func commonDigest(all map[string]found) string {
	hosts := map[string]int{}
	for _, f := range all {
		for _, digest := range f.digests {
			hosts[digest]++
		}
	}
	for _, digest := range slices.Sorted(maps.Keys(hosts)) {
		if hosts[digest] == len(all) {
			return digest
		}
	}
	return ""
}

// pull has a host fetch an image from its registry.
func (e *Engine) pull(ctx context.Context, reached client.APIClient, name string) error {
	auth, err := e.connection.registryAuth(name)
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

// load loads an archive of images onto a host.
func load(ctx context.Context, reached client.APIClient, archive io.Reader) error {
	response, err := reached.ImageLoad(ctx, archive, client.ImageLoadWithQuiet(true))
	if err != nil {
		return err
	}
	defer response.Body.Close()
	return done(response.Body)
}

// done reads what an Engine reports of its work to the end, and returns the error among it.
func done(body io.Reader) error {
	return jsonmessage.DisplayJSONMessagesStream(body, io.Discard, 0, false, nil)
}
