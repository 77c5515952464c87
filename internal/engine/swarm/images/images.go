// Package images manages the images on the hosts of a Swarm: which one members run on each host, how it gets there from
// a registry, an archive or a build, and how it is removed.
package images

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/swarm"
	"github.com/docker/docker/client"

	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/swarm/dockerapi"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/swarm/spec"
)

var _ engine.ImageStore = Images{}

// Images are the images on the hosts of a cluster.
type Images struct {
	dockerapi.Swarm

	tags *Tags
}

// New returns the images of a cluster.
func New(in dockerapi.Swarm, known *Tags) Images { return Images{in, known} }

// The labels of the images that are built for a cluster. Containers inherit them, so they differ from the labels of
// members.
const (
	LabelCluster = spec.LabelPrefix + "image.cluster"
	LabelSource  = spec.LabelPrefix + "image.source"
)

// imageHost is a host that keeps images.
type imageHost struct {
	name string
	// architecture is the node's name for it, such as x86_64.
	architecture string
	docker       client.APIClient
	// trouble says why the host can't be asked now, such as "it is down"; "" if it can.
	trouble string
}

// imageHosts returns all hosts of the cluster, sorted by name. A host whose Engine has no address is an error.
func (e Images) imageHosts(ctx context.Context) ([]imageHost, error) {
	document, err := engine.Cluster(ctx, e.Items)
	if err != nil {
		return nil, fmt.Errorf("cluster %q: %w", e.Cluster, err)
	}
	m, err := e.Connection.Manager(ctx)
	if err != nil {
		return nil, err
	}
	engines, err := e.Engines(ctx, m)
	if err != nil {
		return nil, err
	}
	nodes, err := e.Reads.Nodes(ctx)
	if err != nil {
		return nil, err
	}
	known := dockerapi.NewNodes(nodes)
	var hosts []imageHost
	var without []string
	for _, name := range document.Spec.HostNames() {
		id := document.Spec.Hosts[name].ID
		docker, reached := engines[id]
		if !reached {
			without = append(without, name)
			continue
		}
		trouble := ""
		if state := known[id].Status.State; state != swarm.NodeStateReady {
			trouble = fmt.Sprintf("it is %s", cmp.Or(string(state), "not part of the Swarm"))
		}
		hosts = append(hosts, imageHost{name, known[id].Description.Platform.Architecture, docker, trouble})
	}
	if len(without) > 0 {
		return nil, fmt.Errorf("images can't be distributed to %s of cluster %q, whose Docker Engines have no "+
			"address: declare them in the cluster's hosts, with address = \"ssh://…\" or \"tcp://…\"",
			strings.Join(without, ", "), e.Cluster)
	}
	return hosts, nil
}

// onHosts calls do for all hosts in parallel, and returns the results of those that found something. The error names
// each host that failed.
func onHosts[T any](
	ctx context.Context, hosts []imageHost,
	do func(ctx context.Context, host imageHost) (result T, found bool, err error),
) (map[string]T, error) {
	var mu sync.Mutex
	results, failures := map[string]T{}, map[string]error{}
	err := dockerapi.InParallel(ctx, hosts, func(ctx context.Context, host imageHost) error {
		result, found, err := do(ctx, host)
		mu.Lock()
		defer mu.Unlock()
		switch {
		case client.IsErrConnectionFailed(err):
			failures[host.name] = fmt.Errorf("host %s %w: %w", host.name, engine.ErrUnreachable, err)
		case err != nil:
			failures[host.name] = fmt.Errorf("host %s: %w", host.name, err)
		case found:
			results[host.name] = result
		}
		return nil
	})
	if err == nil {
		err = ctx.Err() // otherwise hosts that were not asked would seem to have nothing
	}
	for _, name := range slices.Sorted(maps.Keys(failures)) {
		err = errors.Join(err, failures[name])
	}
	return results, err
}

// FindImage returns the images that the hosts have under a name. A host that is down is marked Away.
func (e Images) FindImage(ctx context.Context, name string) (map[string]engine.Image, error) {
	hosts, err := e.imageHosts(ctx)
	if err != nil {
		return nil, err
	}
	return e.findImage(ctx, hosts, name)
}

// findImage looks for an image by its name, or by its [engine.ImageID].
func (e Images) findImage(ctx context.Context, hosts []imageHost, name string) (map[string]engine.Image, error) {
	return onHosts(ctx, hosts, func(ctx context.Context, host imageHost) (engine.Image, bool, error) {
		if host.trouble != "" {
			return engine.Image{Away: true}, true, nil
		}
		var found HeldImage
		err := dockerapi.Patiently(ctx, func(ctx context.Context) (err error) {
			found, err = InspectImage(ctx, host.docker, name)
			return err
		})
		if cerrdefs.IsNotFound(err) {
			return engine.Image{}, false, nil
		}
		if err != nil {
			return engine.Image{}, false, err
		}
		seen := engine.Image{ID: found.ID, Content: found.Content, Digests: found.digests}
		if found.labels[LabelCluster] == e.Cluster {
			seen.Source = found.labels[LabelSource]
		}
		return seen, true, nil
	})
}

// RemoveImage removes the name from the image with this ID, and from others that were built for this cluster.
func (e Images) RemoveImage(ctx context.Context, name, id string) (map[string]string, error) {
	hosts, err := e.imageHosts(ctx)
	if errors.Is(err, engine.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	found, err := e.findImage(ctx, hosts, name)
	if err != nil {
		return nil, err
	}
	used, err := e.usedImages(ctx)
	if err != nil {
		return nil, err
	}
	return onHosts(ctx, hosts, func(ctx context.Context, host imageHost) (string, bool, error) {
		seen, there := found[host.name]
		switch {
		case host.trouble != "":
			return host.trouble, true, nil
		case !there:
			return "", false, nil
		case !seen.Is(id) && seen.Source == "":
			return "the name refers to another image there, " + seen.ID, true, nil
		}
		if shared := LocalName(SharedRepository, seen.Content); !used[shared] {
			if err := Untag(ctx, host.docker, shared); err != nil {
				return "", false, err
			}
		}
		err := e.removeImage(ctx, host, name)
		switch {
		case cerrdefs.IsConflict(err):
			return err.Error(), true, nil
		case err != nil && !cerrdefs.IsNotFound(err):
			return "", false, err
		}
		_ = dropReplaced(ctx, host.docker, used) // if it fails, the next call tries again
		return "", false, nil
	})
}

// ProvideImage ensures that all hosts have an image under its name.
func (e Images) ProvideImage(ctx context.Context, spec engine.ImageSpec) (map[string]engine.Image, error) {
	hosts, err := e.imageHosts(ctx)
	if err != nil {
		return nil, err
	}
	for _, host := range hosts {
		if host.trouble != "" {
			return nil, fmt.Errorf(
				"images can't be distributed to host %s, because %s: bring the host back, or remove it from "+
					"the cluster",
				host.name, host.trouble,
			)
		}
	}
	before, err := e.findImage(ctx, hosts, spec.Name)
	if err != nil {
		return nil, err
	}
	p := provision{engine: e, spec: spec, hosts: hosts, before: before}
	if err := p.check(); err != nil {
		return nil, err
	}
	if err := p.bring(ctx); err != nil {
		return nil, err
	}
	after, err := e.findImage(ctx, hosts, spec.Name)
	if err != nil {
		return nil, err
	}
	for _, host := range hosts {
		seen, there := after[host.name]
		if !there || !seen.Is(p.id) {
			return nil, fmt.Errorf("host %s lost image %q again: something else changes its images; apply again",
				host.name, spec.Name)
		}
	}
	used, err := e.usedImages(ctx)
	if err != nil {
		return nil, err
	}
	_, err = onHosts(ctx, hosts, func(ctx context.Context, host imageHost) (none struct{}, found bool, err error) {
		if isID(p.id) { // a reference to it that works on every host
			err = errors.Join(host.docker.ImageTag(ctx, after[host.name].ID, LocalName(SharedRepository, p.id)),
				Untag(ctx, host.docker, LocalName(ReplacedRepository, p.id)))
		}
		_ = dropReplaced(ctx, host.docker, used) // if it fails, the next call tries again
		return none, false, err
	})
	return after, err
}

// provision brings an image to hosts.
type provision struct {
	engine Images
	spec   engine.ImageSpec
	hosts  []imageHost
	// before is what the hosts had under the name. id is the [engine.ImageID] of what they are to have.
	before map[string]engine.Image
	id     string
}

// check determines the image's ID if it is known, and whether all hosts can get the image without losing another one.
func (p *provision) check() error {
	p.id = p.spec.ID
	pulled := p.spec.Archive == nil && p.spec.Build == nil
	if several := platforms(p.hosts); several != "" {
		switch {
		case !pulled:
			return fmt.Errorf("image %q is for one platform, but the hosts have several: %s. Push a multi-platform "+
				"image to a registry, and omit archive and build", p.spec.Name, several)
		case isID(p.id):
			return fmt.Errorf("image %q was pulled for one platform, as %s, but the hosts now have several: %s. "+
				"Replace the resource, which finds the ID of the multi-platform image: terraform apply "+
				"-replace=<address>", p.spec.Name, p.id, several)
		}
	}
	if p.id == "" && p.spec.Build != nil {
		for _, host := range p.hosts {
			if seen := p.before[host.name]; seen.Source == p.spec.Build.Source {
				p.id = seen.Content
				break
			}
		}
	}
	if p.id == "" && pulled {
		return nil // the image that the hosts have, or that those without one will pull
	}
	taken := map[string]string{}
	for host, seen := range p.before {
		replaced := p.spec.Replaces[host]
		if !seen.Is(p.id) && seen.Source == "" && (replaced == "" || !seen.Is(replaced)) {
			taken[host] = seen.ID
		}
	}
	if len(taken) > 0 {
		return &engine.ImageTakenError{Name: p.spec.Name, Wanted: p.id, Taken: taken}
	}
	return nil
}

// platforms describes the platforms of hosts that have several, and is "" otherwise.
func platforms(hosts []imageHost) string {
	byArchitecture := map[string][]string{}
	for _, host := range hosts {
		byArchitecture[host.architecture] = append(byArchitecture[host.architecture], host.name)
	}
	if len(byArchitecture) < 2 {
		return ""
	}
	var parts []string
	for _, architecture := range slices.Sorted(maps.Keys(byArchitecture)) {
		parts = append(parts, fmt.Sprintf("%s (%s)", architecture, strings.Join(byArchitecture[architecture], ", ")))
	}
	return strings.Join(parts, ", ")
}

// bring brings the image to the hosts without it, and gives it its name there.
func (p *provision) bring(ctx context.Context) (err error) {
	if p.id == "" {
		if p.spec.Build == nil {
			return p.settle(ctx)
		}
		if p.id, err = p.engine.build(ctx, p.hosts[0], *p.spec.Build); err != nil {
			return fmt.Errorf("building image %q on host %s: %w", p.spec.Name, p.hosts[0].name, err)
		}
	}
	holders, err := p.engine.findImage(ctx, p.hosts, p.id)
	if err != nil {
		return err
	}
	var missing []imageHost
	for _, host := range p.hosts {
		if _, there := holders[host.name]; !there {
			missing = append(missing, host)
		}
	}
	switch {
	case len(missing) == 0:
	case p.spec.Archive != nil:
		err = p.load(ctx, missing)
	case p.spec.Build != nil:
		err = p.copy(ctx, holders, missing)
	default:
		err = p.pull(ctx, p.origin(holders), missing)
	}
	if err != nil {
		return err
	}
	return p.name(ctx)
}

// settle makes the hosts without an image of the name pull it, and determines its ID.
func (p *provision) settle(ctx context.Context) error {
	var missing []imageHost
	for _, host := range p.hosts {
		if _, there := p.before[host.name]; !there {
			missing = append(missing, host)
		}
	}
	if err := p.pull(ctx, p.spec.Name, missing); err != nil {
		return err
	}
	found, err := p.engine.findImage(ctx, p.hosts, p.spec.Name)
	if err != nil {
		return err
	}
	p.id, err = engine.ImageID(p.spec.Name, found)
	return err
}

// origin is the reference to pull to get exactly the image that hosts have: a tag may have moved in the meantime.
func (p *provision) origin(holders map[string]engine.Image) string {
	if !strings.HasPrefix(p.id, "sha256:") {
		return p.id // a name with a digest
	}
	for _, host := range slices.Sorted(maps.Keys(holders)) {
		if digests := holders[host].Digests; len(digests) > 0 {
			return digests[0]
		}
	}
	return p.spec.Name
}

// name gives the image its name on the hosts where it lacks it.
func (p *provision) name(ctx context.Context) error {
	_, err := onHosts(ctx, p.hosts, func(ctx context.Context, host imageHost) (none struct{}, found bool, err error) {
		if seen, there := p.before[host.name]; there && seen.Is(p.id) {
			return none, false, nil
		}
		has, err := InspectImage(ctx, host.docker, p.id)
		switch {
		case cerrdefs.IsNotFound(err):
			return none, false,
				fmt.Errorf("the image received for %q is not %s: the tag was pushed again, or the archive changed. "+
					"Plan again, or refer to the image by its digest", p.spec.Name, p.id)
		case err != nil || Fixed(p.spec.Name):
			return none, false, err
		}
		if replaced, there := p.before[host.name]; there {
			if err := host.docker.ImageTag(ctx, replaced.ID,
				LocalName(ReplacedRepository, replaced.Content)); err != nil {
				return none, false, err
			}
		}
		return none, false, host.docker.ImageTag(ctx, has.ID, p.spec.Name)
	})
	return err
}
