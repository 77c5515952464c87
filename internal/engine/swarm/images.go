package swarm

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/distribution/reference"
	"github.com/docker/docker/api/types/image"
	"github.com/docker/docker/client"
	"github.com/docker/docker/pkg/jsonmessage"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
)

// wanted is an image that members run, and the hosts they are on.
type wanted struct {
	name   string
	policy domain.PullPolicy
	// hosts are the nodes' IDs, with the hosts' names.
	hosts map[string]string
}

// resolve returns what the hosts are told to run for an image: its ID where all of them have it, which keeps a Swarm from asking a
// registry for each task, else the name as it is, which has each host pull it. Hosts that can be reached and do not
// have it pull it here, unless the policy forbids it.
func (e *Engine) resolve(ctx context.Context, w wanted, engines map[string]client.APIClient) (string, error) {
	if w.policy == domain.PullAlways || fixed(w.name) {
		return w.name, nil
	}
	var mu sync.Mutex
	ids := map[string]found{}
	unreached := false
	err := inParallel(ctx, slices.Sorted(maps.Keys(w.hosts)), func(ctx context.Context, node string) error {
		reached, ok := engines[node]
		if !ok {
			mu.Lock()
			defer mu.Unlock()
			unreached = true
			return nil
		}
		f, err := e.present(ctx, reached, w)
		if err != nil {
			return fmt.Errorf("image %q on host %s: %w", w.name, w.hosts[node], err)
		}
		mu.Lock()
		defer mu.Unlock()
		ids[w.hosts[node]] = f
		return nil
	})
	if err != nil {
		return "", err
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

// found is an image as a host has it.
type found struct{ id, platform string }

// present returns the image as a host has it, once it has.
func (e *Engine) present(ctx context.Context, reached client.APIClient, w wanted) (found, error) {
	inspected, err := reached.ImageInspect(ctx, w.name)
	if cerrdefs.IsNotFound(err) {
		if w.policy == domain.PullNever {
			return found{}, fmt.Errorf("it is not there, and pull_policy is %q: load it onto the host, or let it be pulled", domain.PullNever)
		}
		if err := e.pull(ctx, reached, w.name); err != nil {
			return found{}, fmt.Errorf("it is not there, and can't be pulled: %w", err)
		}
		inspected, err = reached.ImageInspect(ctx, w.name)
	}
	if err != nil {
		return found{}, err
	}
	return found{inspected.ID, inspected.Os + "/" + inspected.Architecture}, nil
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
