//go:build linux

package members

import (
	"bytes"
	"slices"
	"testing"

	"github.com/docker/docker/api/types/swarm"

	"github.com/trainyard/terraform-provider-trainyard/internal/acctest/testbed"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/swarm/dockerapi"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/swarm/spec"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/swarm/swarmtest"
)

// TestForeignContents: somebody else's config object is looked up only if a service of the cluster refers to it.
func TestForeignContents(t *testing.T) {
	e, proxy := stored(t, "foreigncontent")
	swarmtest.Leave(t, e.Connection,
		swarm.ConfigSpec{Annotations: swarm.Annotations{Name: "theirs"}, Data: []byte("epochs: 4\n")})
	theirs, err := e.Connection.ConfigNamed(t.Context(), "theirs")
	swarmtest.Must(t, err)
	own, err := e.Connection.ConfigsWith(dockerapi.Labelled(spec.LabelCluster, e.Cluster))(t.Context())
	swarmtest.Must(t, err)
	service := func(cluster string, refs ...string) swarm.Service {
		var s swarm.Service
		s.Spec.Labels = map[string]string{spec.LabelCluster: cluster}
		s.Spec.TaskTemplate.ContainerSpec = &swarm.ContainerSpec{}
		for _, id := range refs {
			s.Spec.TaskTemplate.ContainerSpec.Configs = append(s.Spec.TaskTemplate.ContainerSpec.Configs,
				&swarm.ConfigReference{ConfigID: id})
		}
		return s
	}
	for name, c := range map[string]struct {
		services []swarm.Service
		lists    int
		want     string
	}{
		"ours alone":         {[]swarm.Service{{}, service("foreigncontent", own[0].ID)}, 1, ""},
		"theirs":             {[]swarm.Service{service("foreigncontent", own[0].ID, theirs.ID)}, 2, "epochs: 4\n"},
		"theirs, of another": {[]swarm.Service{service("other", theirs.ID)}, 1, ""},
	} {
		known, err := e.remembered().known(t.Context(), c.services)
		swarmtest.Must(t, err)
		if got := string(known.Configs[theirs.ID].Spec.Data); got != c.want {
			t.Errorf("%s: the content is %q", name, got)
		}
		if !bytes.Contains(known.Configs[own[0].ID].Spec.Data, []byte("foreigncontent")) {
			t.Errorf("%s: the cluster's own is not known", name)
		}
		proxy.Reset()
		_, err = e.remembered().known(t.Context(), c.services)
		swarmtest.Must(t, err)
		if lists := len(slices.DeleteFunc(proxy.Calls(), func(call testbed.Call) bool {
			return !swarmtest.Listing(call)
		})); lists != c.lists {
			t.Errorf("%s: %d lists, not %d", name, lists, c.lists)
		}
	}
}
