//go:build linux

package swarm

import (
	"strings"
	"testing"

	dockerswarm "github.com/docker/docker/api/types/swarm"

	"github.com/trainyard/terraform-provider-trainyard/internal/acctest/testbed"
	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/swarm/dockerapi"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/swarm/images"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/swarm/spec"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/swarm/swarmtest"
)

// TestImagesOfMembers: hosts pull the images of members from a registry, according to each member's policy.
func TestImagesOfMembers(t *testing.T) { swarmtest.OnBeds(t, testImagesOfMembers) }

func testImagesOfMembers(t *testing.T, bed *testbed.Bed) {
	s := shelfOf(t, bed, "members", nil)
	registry, host := openShop(t, s.bed, "")
	name := host + "/trainer:2"
	first := registry.sell(t, "2")
	digest := host + "/trainer@" + digestOf(t, registry.images["2"])
	t.Cleanup(func() { s.forget(first) })

	nodes, err := s.Reads.Nodes(t.Context())
	must(t, err)
	document, err := engine.Cluster(t.Context(), s)
	must(t, err)
	in := images.Surroundings{IDs: dockerapi.NodesOf(document.Spec, nodes), Nodes: dockerapi.NewNodes(nodes)}
	member := func(
		index int, host, image string, policy domain.PullPolicy, change ...func(*domain.MemberSpec),
	) domain.MemberSpec {
		spec := domain.MemberSpec{
			Cluster: "members", Group: "g", Role: "worker", Index: index, Name: domain.MemberName("g", "worker", index),
			Host: host, Hash: "h", Run: 2,
			Image: image, Container: domain.Container{PullPolicy: policy},
		}
		for _, c := range change {
			c(&spec)
		}
		return spec
	}
	anywhere := func(hosts ...string) func(*domain.MemberSpec) {
		return func(s *domain.MemberSpec) {
			s.Scheduling, s.Shared, s.Interchangeable, s.Host = domain.SchedulingEngine, true, true, ""
			s.Placement.Hosts = hosts
		}
	}
	// running returns the service of a member that runs an image by its ID.
	running := func(given domain.MemberSpec, id string) map[string]dockerswarm.Service {
		around := spec.Target{Network: "net", Nodes: in.IDs}
		around.Images = map[string]spec.References{given.Image: {Shared: id}}
		rendered, err := spec.Render(given, around, 1)
		must(t, err)
		return map[string]dockerswarm.Service{rendered.Name: {Spec: rendered}}
	}
	provide := func(
		in images.Surroundings, services map[string]dockerswarm.Service, specs ...domain.MemberSpec,
	) (references []string, err error) {
		in.Services = services
		resolved, err := s.Resolve(t.Context(), specs, in)
		for _, spec := range specs {
			references = append(references, resolved.Of(spec).On(in.IDs[spec.Host]))
		}
		return references, err
	}
	check := func(what string, references []string, err error, want ...string) {
		t.Helper()
		if err != nil || strings.Join(references, " ") != strings.Join(want, " ") {
			t.Errorf("%s: the hosts are to run %q (%v), want %q", what, references, err, want)
		}
	}
	refuses := func(what string, err error, words ...string) {
		t.Helper()
		for _, word := range words {
			if err == nil || !strings.Contains(err.Error(), word) {
				t.Errorf("%s: the error is %v, want one that says %q", what, err, word)
			}
		}
	}

	_, err = provide(in, nil, member(0, "node1", name, domain.PullNever))
	refuses("what is not there, and not to be pulled", err, `on host node1`, `pull_policy is "never"`)
	_, err = provide(in, nil, member(0, "node1", digest, domain.PullNever))
	refuses("a digest that is not there, and not to be pulled", err, `pull_policy is "never"`)
	_, err = provide(in, nil, member(0, "node1", first, ""))
	refuses("an ID that is not there", err, "an ID can't be pulled")
	s.want(name, "", "", "")

	references, err := provide(in, nil, member(0, "node1", name, ""), member(1, "node2", name, ""))
	here, there := s.id(0, first), s.id(1, first)
	shared := here // the reference that works on either host
	if there != here {
		shared = digest // both image stores know the digest
	}
	check("what is pulled", references, err, here, there)
	s.want(name, first, first, "")
	asked := registry.asked()
	references, err = provide(in, nil, member(0, "node1", name, domain.PullNever),
		member(1, "node2", name, domain.PullAlways))
	check("one image by two policies", references, err, here, name)
	references, err = provide(in, nil, member(0, "node1", digest, domain.PullNever))
	check("a digest that is there", references, err, digest)
	references, err = provide(in, nil, member(0, "node1", first, ""))
	check("an ID that is there", references, err, here)
	references, err = provide(in, nil, member(1, "node2", first, ""))
	check("an image that is there by its content", references, err, there)
	references, err = provide(in, nil, member(0, "", name, domain.PullNever, anywhere("node1", "node2")))
	check("members that may be on two hosts", references, err, shared)
	if registry.asked() != asked {
		t.Error("the registry was asked for what is there")
	}

	down := in
	down.Nodes = dockerapi.NewNodes(nodes)
	lost := down.Nodes[in.IDs["node3"]]
	lost.Status.State = dockerswarm.NodeStateDown
	down.Nodes[lost.ID] = lost
	references, err = provide(down, nil, member(0, "", name, domain.PullNever, anywhere()))
	check("members that could be on a host that is down", references, err, shared)

	second := registry.sell(t, "2")
	t.Cleanup(func() { s.forget(second) })
	_, err = provide(in, nil, member(0, "node1", name, ""), member(2, "node3", name, ""))
	refuses("hosts with different images", err, here+" on host node1", s.id(2, second)+" on host node3")
	_, err = provide(in, running(member(0, "node1", name, ""), here), member(2, "node3", name, ""))
	refuses("a host that differs from one that was changed before, in the same run", err, here+" on host node1",
		s.id(2, second)+" on host node3")
	former := member(0, "node1", name, "", func(s *domain.MemberSpec) { s.Run = 1 })
	references, err = provide(in, running(former, here), member(2, "node3", name, ""))
	check("a host that differs from one of an earlier run", references, err, s.id(2, second))
	references, err = provide(in, running(member(0, "node1", name, ""), here), member(0, "node1", name, ""))
	check("what is mended", references, err, here)

	// The controller reaches no host but its own: for others it relies on the members that run there.
	s.Connection.Settings.Controller = true
	references, err = provide(in,
		running(member(1, "node2", name, "", func(s *domain.MemberSpec) { s.Run = 1 }), there),
		member(0, "node2", name, ""))
	check("a host that can't be asked, and runs the image", references, err, there)
	references, err = provide(in,
		running(member(0, "node2", name, "", func(s *domain.MemberSpec) { s.Run = 1 }), there),
		member(0, "node2", name, ""))
	check("a host that can't be asked, and runs the image in the member that starts again", references, err, there)
	references, err = provide(in,
		running(member(0, "node1", name, "", func(s *domain.MemberSpec) { s.Run = 1 }), second),
		member(0, "node1", name, ""))
	check("a host that has another image by that name by now", references, err, second)
	references, err = provide(in, nil, member(0, "node2", name, ""))
	check("a host that can't be asked", references, err, name)

	// The controller finds, on its own host, the local tag of an image that was brought to all hosts.
	s.Connection.Settings.Controller = false
	brought := archived(t, "members/brought:1", "brought")
	s.provide(brought)
	s.Connection.Settings.Controller = true
	local := images.LocalName(images.SharedRepository, brought.ID)
	for what, spec := range map[string]domain.MemberSpec{
		"a host that can't be asked":    member(0, "node2", brought.ID, ""),
		"hosts that can't all be asked": member(0, "", brought.ID, "", anywhere("node1", "node2")),
		"none that can be asked":        member(0, "", brought.ID, "", anywhere("node2", "node3")),
	} {
		references, err = provide(in, nil, spec)
		check("an image that was brought, to "+what, references, err, local)
	}
}
