package images

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/distribution/reference"
	"github.com/docker/docker/client"

	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/swarm/spec"
)

// isID reports whether an image is given by an ID or content digest.
func isID(name string) bool { return strings.HasPrefix(name, "sha256:") }

// Fixed reports whether a reference can only ever mean one image.
func Fixed(name string) bool { return isID(name) || digested(name) }

// digested reports whether an image is given by its registry digest.
func digested(name string) bool {
	parsed, err := reference.ParseNormalizedNamed(name)
	if err != nil {
		return false
	}
	_, is := parsed.(reference.Digested)
	return is
}

// found is an image on a host: the host's ID of it, its content digest ("" if unknown), the host's platform, and its
// registry digests.
type found struct {
	id, content, platform string
	digests               []string
}

// is reports whether two hosts have the same image.
func (f found) is(other found) bool {
	return f.id == other.id || f.content != "" && f.content == other.content
}

// agree returns an error if hosts of the same platform have different images under a name.
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
			return fmt.Errorf("image %q is %s on host %s but %s on host %s: remove the outdated one, or refer to the "+
				"image by its digest or ID", name, all[other].id, other, f.id, host)
		}
	}
	return nil
}

// broughtAs returns the local name of an image that was brought to all hosts, "" if it was not. Any Engine has that
// name.
func broughtAs(ctx context.Context, image string, engines map[string]client.APIClient) (string, error) {
	name := LocalName(SharedRepository, image)
	for _, node := range slices.Sorted(maps.Keys(engines)) {
		_, err := engines[node].ImageInspect(ctx, name)
		if err == nil {
			return name, nil
		}
		if !cerrdefs.IsNotFound(err) && !client.IsErrConnectionFailed(err) {
			return "", err
		}
	}
	return "", nil
}

// refer returns what hosts are told to run, given what they have. Hosts that could not be asked (unreached) have an
// image under its local name if it was brought to all hosts; otherwise they pull it by name, or share the others' ID.
func refer(name string, all map[string]found, nodes map[string]string, unreached bool, local string) spec.References {
	ids, contents := map[string]bool{}, map[string]bool{}
	r := spec.References{Shared: name, Own: map[string]string{}}
	for host, f := range all {
		ids[f.id], contents[f.content] = true, true
		r.Own[nodes[host]] = f.id
	}
	if len(contents) == 1 {
		r.Content = slices.Collect(maps.Keys(contents))[0]
	}
	switch {
	case digested(name), unreached && !isID(name):
		r.Own = nil
	case local != "":
		r.Shared = local
	case len(ids) == 1:
		r.Shared = slices.Collect(maps.Keys(ids))[0]
	case r.Content != "":
		var digests [][]string
		for _, f := range all {
			digests = append(digests, f.digests)
		}
		r.Shared = cmp.Or(engine.CommonDigest(digests), LocalName(SharedRepository, r.Content))
	}
	return r
}
