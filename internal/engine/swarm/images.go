package swarm

import (
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
	id   string
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
			peers = append(peers, peer{node, r.Reference, id.run == use.run})
		}
	}
	return peers
}

// resolve returns what the hosts are told to run for an image: its ID where all of them have it, which keeps a Swarm from asking a
// registry for each task, else the name as it is, which has each host pull it. Hosts that can be reached and do not
// have it pull it here, unless the policy forbids it; what others have is told by what runs there. To the controller that tells of every host: the
// name may stand for another image by now, which an apply is to bring.
func (e *Engine) resolve(ctx context.Context, w wanted, engines map[string]client.APIClient, in surroundings) (string, error) {
	if w.policy == domain.PullAlways {
		return w.name, nil
	}
	var mu sync.Mutex
	ids := map[string]found{} // by host
	for host, node := range in.nodes {
		_, asked := engines[node]
		asked = asked && !e.connection.settings.Controller
		for _, p := range w.peers {
			if p.node == node && (p.sameRun || !asked && w.hosts[node] != "") {
				ids[host] = found{p.id, in.view.platform(node)}
			}
		}
	}
	unreached := false
	err := inParallel(ctx, slices.Sorted(maps.Keys(w.hosts)), func(ctx context.Context, node string) error {
		host := w.hosts[node]
		reached, ok := engines[node]
		mu.Lock()
		_, told := ids[host]
		unreached = unreached || !ok && !told
		mu.Unlock()
		if !ok || told && e.connection.settings.Controller {
			return nil
		}
		id, err := e.present(ctx, reached, w)
		if err != nil {
			return fmt.Errorf("image %q on host %s: %w", w.name, host, err)
		}
		mu.Lock()
		defer mu.Unlock()
		ids[host] = found{id, in.view.platform(node)}
		return nil
	})
	if err != nil {
		return "", err
	}
	if fixed(w.name) {
		return w.name, nil
	}
	return agree(w.name, ids, unreached)
}

// isID tells whether an image is named by its ID.
func isID(name string) bool { return strings.HasPrefix(name, "sha256:") }

// fixed tells whether an image is named by its ID or its digest: it can be no other.
func fixed(name string) bool {
	if isID(name) {
		return true
	}
	parsed, err := reference.ParseNormalizedNamed(name)
	if err != nil {
		return false
	}
	_, digested := parsed.(reference.Digested)
	return digested
}

// found is the ID of the image that a host has, and the host's platform.
type found struct{ id, platform string }

// present returns the ID of the image that a host has, once it has it.
func (e *Engine) present(ctx context.Context, reached client.APIClient, w wanted) (string, error) {
	inspected, err := reached.ImageInspect(ctx, w.name)
	if cerrdefs.IsNotFound(err) {
		switch {
		case isID(w.name):
			return "", errors.New("it is not there, and an ID can't be pulled: load the image onto the host, or bring it there by a trainyard_image")
		case w.policy == domain.PullNever:
			return "", fmt.Errorf("it is not there, and pull_policy is %q: load it onto the host, or let it be pulled", domain.PullNever)
		}
		if err := e.pull(ctx, reached, w.name); err != nil {
			return "", fmt.Errorf("it is not there, and can't be pulled: %w", err)
		}
		inspected, err = reached.ImageInspect(ctx, w.name)
	}
	return inspected.ID, err
}

// agree returns the ID that all hosts have an image under, or its name where hosts of several platforms have images of their
// own. Two images for the same platform are an error.
func agree(name string, ids map[string]found, unreached bool) (string, error) {
	byPlatform, byID := map[string]string{}, map[string]bool{}
	for _, host := range slices.Sorted(maps.Keys(ids)) {
		f := ids[host]
		byID[f.id] = true
		other, known := byPlatform[f.platform]
		if !known {
			byPlatform[f.platform] = host
			continue
		}
		if ids[other].id != f.id {
			return "", fmt.Errorf("image %q is %s on host %s and %s on host %s: remove it where it is out of date, or name it by its digest or ID", name, ids[other].id, other, f.id, host)
		}
	}
	if unreached || len(byID) != 1 {
		return name, nil
	}
	for id := range byID {
		return id, nil
	}
	return name, nil
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
