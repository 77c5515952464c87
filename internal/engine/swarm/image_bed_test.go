//go:build linux

package swarm

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	cerrdefs "github.com/containerd/errdefs"
	dockerimage "github.com/docker/docker/api/types/image"
	dockerswarm "github.com/docker/docker/api/types/swarm"
	"github.com/google/go-cmp/cmp"
	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/trainyard/terraform-provider-trainyard/internal/acctest"
	"github.com/trainyard/terraform-provider-trainyard/internal/acctest/testbed"
	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/swarm/image"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/swarm/images"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/swarm/swarmtest"
	"github.com/trainyard/terraform-provider-trainyard/internal/imagesource"
)

func Nothing() (io.ReadCloser, error) { return nil, errors.New("there is no archive") }

// shelf is a cluster of all nodes of a bed, for tests of its images.
type shelf struct {
	*testing.T
	*Engine
	bed *testbed.Bed
}

// shelfOf stores a cluster with a bed's nodes as its hosts. addresses override the nodes' own.
func shelfOf(t *testing.T, bed *testbed.Bed, cluster string, addresses map[string]string) shelf {
	t.Helper()
	e, _ := documentsOn(t, bed, cluster)
	s := shelf{t, e, bed}
	nodes, err := s.bed.Nodes[0].Client().NodeList(t.Context(), dockerswarm.NodeListOptions{})
	must(t, err)
	hosts := map[string]domain.Host{}
	for _, node := range s.bed.Nodes {
		address, other := addresses[node.Name]
		if !other {
			address = node.Host()
		}
		i := slices.IndexFunc(nodes, func(n dockerswarm.Node) bool { return n.Description.Hostname == node.Name })
		hosts[node.Name] = domain.Host{Address: address, ID: nodes[i].ID}
	}
	_, err = engine.Put(t.Context(), e,
		domain.ClusterDocument{Spec: domain.Cluster{Name: cluster, Engine: Name, Hosts: hosts}})
	must(t, err)
	return s
}

// archived returns the specification of an image with one file that is loaded from an archive.
func archived(t *testing.T, name, content string) engine.ImageSpec {
	t.Helper()
	img, err := image.Build(v1.Config{Cmd: []string{"/file"}}, image.FromBytes("/file", 0o755, []byte(content)))
	must(t, err)
	file, err := os.Create(filepath.Join(t.TempDir(), "image.tar"))
	must(t, err)
	must(t, errors.Join(image.Write(file, name, img), file.Close()))
	archive, err := imagesource.OpenArchive(file.Name(), name)
	must(t, err)
	return engine.ImageSpec{Name: name, ID: archive.Content, Archive: archive.Untagged}
}

// contentOf returns an image's content digest.
func contentOf(t *testing.T, img v1.Image) string {
	t.Helper()
	config, err := img.ConfigFile()
	must(t, err)
	return imagesource.ContentDigest(*config)
}

// id returns a node's own ID of an image.
func (s shelf) id(node int, image string) string {
	s.Helper()
	held, err := images.InspectImage(s.Context(), s.bed.Nodes[node].Client(), image)
	must(s.T, err)
	return held.ID
}

// provide brings an image to all hosts, checks that they have it, and removes it at the end of the test.
func (s shelf) provide(spec engine.ImageSpec) string {
	s.Helper()
	found, err := s.ProvideImage(s.Context(), spec)
	must(s.T, err)
	id, err := engine.ImageID(spec.Name, found)
	must(s.T, err)
	s.Cleanup(func() { s.forget(id) })
	if spec.ID != "" && id != spec.ID {
		s.Errorf("%s is %s, want %s", spec.Name, id, spec.ID)
	}
	s.want(spec.Name, id, id, id)
	return id
}

// forget removes an image from all nodes, under all its names.
func (s shelf) forget(id string) {
	ctx := context.WithoutCancel(s.Context())
	for _, node := range s.bed.Nodes {
		held, err := images.InspectImage(ctx, node.Client(), id)
		if err == nil {
			// A container may outlive its service for a while.
			acctest.Eventually(s.T, "an image to be used by nobody", func() bool {
				_, err = node.Client().ImageRemove(ctx, held.ID, dockerimage.RemoveOptions{Force: true})
				return !cerrdefs.IsConflict(err)
			})
		}
		if err != nil && !cerrdefs.IsNotFound(err) {
			s.Error(err)
		}
	}
}

// want checks the images that the nodes have under a name; "" means none.
func (s shelf) want(name string, ids ...string) {
	s.Helper()
	found, err := s.FindImage(s.Context(), name)
	must(s.T, err)
	want := map[string]string{}
	for i, id := range ids {
		if id != "" {
			want[s.bed.Nodes[i].Name] = id
		}
	}
	got := map[string]string{}
	for host, image := range found {
		got[host] = image.Content
	}
	if diff := cmp.Diff(want, got); diff != "" {
		s.Errorf("%s on the hosts (-want +got):\n%s", name, diff)
	}
}

// remove removes a name, or an image, from a node.
func (s shelf) remove(node int, ref string) {
	s.Helper()
	if strings.HasPrefix(ref, "sha256:") {
		ref = s.id(node, ref)
	}
	_, err := s.bed.Nodes[node].Client().ImageRemove(s.Context(), ref, dockerimage.RemoveOptions{Force: true})
	must(s.T, err)
}

// tag gives an image of a node a name.
func (s shelf) tag(node int, id, name string) {
	s.Helper()
	must(s.T, s.bed.Nodes[node].Client().ImageTag(s.Context(), s.id(node, id), name))
}

func TestImagesFromArchives(t *testing.T) { swarmtest.OnBeds(t, testImagesFromArchives) }

func testImagesFromArchives(t *testing.T, bed *testbed.Bed) {
	s := shelfOf(t, bed, "archives", nil)
	first, second := archived(t, "archives/trainer:1", "first"), archived(t, "archives/trainer:1", "second")
	s.want(first.Name, "", "", "")
	s.provide(first)

	s.remove(1, first.ID)
	s.want(first.Name, first.ID, "", first.ID)
	s.provide(first)

	// An image that is there under its ID only needs the name.
	s.tag(2, first.ID, "archives/other:1")
	s.remove(2, first.Name)
	unread := first
	unread.Archive = Nothing
	s.provide(unread)

	// Another image is not overwritten, and nothing is changed on any host.
	_, err := s.ProvideImage(t.Context(), second)
	var taken *engine.ImageTakenError
	if !errors.As(err, &taken) || len(taken.Taken) != 3 || taken.Taken["node2"] != s.id(1, first.ID) ||
		taken.Wanted != second.ID {
		t.Errorf("a name that is taken: %v", err)
	}
	s.want(first.Name, first.ID, first.ID, first.ID)
	s.want(second.ID, "", "", "")

	// An image stays while members run from it.
	kept := s.id(1, first.ID)
	stop := s.runs(kept)
	second.Replaces = map[string]string{"node1": first.ID, "node2": first.ID, "node3": first.ID}
	want := []string{"", first.ID, first.ID} // the last host has it under another name too
	if s.id(0, first.ID) == kept {
		want[0] = first.ID
	}
	s.provide(second)
	s.want(first.ID, want...)
	stop()
	s.provide(second)
	s.want(first.ID, "", "", first.ID)

	// Once it is back, it no longer counts as replaced.
	first.Replaces = map[string]string{"node1": second.ID, "node2": second.ID, "node3": second.ID}
	s.provide(first)
	s.want(images.LocalName(images.SharedRepository, first.ID), first.ID, first.ID, first.ID)
	s.want(images.LocalName(images.ReplacedRepository, first.ID), "", "", "")
	s.want(second.ID, "", "", "")
}

// runs creates a service of an image, without tasks, until the test ends or stop is called.
func (s shelf) runs(image string) (stop func()) {
	s.Helper()
	none, manager := uint64(0), s.bed.Nodes[0].Client()
	service, err := manager.ServiceCreate(s.Context(), dockerswarm.ServiceSpec{
		Annotations:  dockerswarm.Annotations{Name: s.Cluster},
		Mode:         dockerswarm.ServiceMode{Replicated: &dockerswarm.ReplicatedService{Replicas: &none}},
		TaskTemplate: dockerswarm.TaskSpec{ContainerSpec: &dockerswarm.ContainerSpec{Image: image}},
	}, dockerswarm.ServiceCreateOptions{})
	must(s.T, err)
	stop = sync.OnceFunc(func() { must(s.T, manager.ServiceRemove(context.WithoutCancel(s.Context()), service.ID)) })
	s.Cleanup(stop)
	return stop
}

func TestImagesThatFail(t *testing.T) {
	testbed.OnEngines(t, func(t *testing.T, engine string) {
		t.Parallel()
		testImagesThatFail(t, swarmtest.ThreeOf(t, engine))
	})
}

func testImagesThatFail(t *testing.T, bed *testbed.Bed) {
	s := shelfOf(t, bed, "failing", nil)
	broken := archived(t, "failing/trainer:1", "broken")
	whole := broken.Archive
	broken.Archive = func() (io.ReadCloser, error) {
		archive, err := whole()
		return io.NopCloser(io.LimitReader(archive, 700)), err
	}
	_, err := s.ProvideImage(t.Context(), broken)
	for _, node := range s.bed.Nodes {
		if err == nil || !strings.Contains(err.Error(), "host "+node.Name+`: loading image "failing/trainer:1": `) {
			t.Errorf("a broken archive: %v", err)
		}
	}
	s.want(broken.Name, "", "", "")

	other := archived(t, "failing/trainer:1", "other")
	mistaken := other
	mistaken.ID = broken.ID
	t.Cleanup(func() { s.forget(other.ID) })
	if _, err = s.ProvideImage(t.Context(), mistaken); err == nil ||
		!strings.Contains(err.Error(), "the image received for \"failing/trainer:1\" is not "+broken.ID) {
		t.Errorf("an archive of another image: %v", err)
	}

	far := shelfOf(t, bed, "unreached", map[string]string{"node2": "unix:///nowhere/docker.sock"})
	for name, call := range map[string]func() error{
		"find":    func() error { _, err := far.FindImage(t.Context(), "trainer:1"); return err },
		"provide": func() error { _, err := far.ProvideImage(t.Context(), other); return err },
		"remove":  func() error { _, err := far.RemoveImage(t.Context(), "trainer:1", other.ID); return err },
	} {
		if err := call(); !errors.Is(err, engine.ErrUnreachable) ||
			!strings.Contains(err.Error(), "host node2 can't be reached") {
			t.Errorf("%s without a host: %v", name, err)
		}
	}
	nowhere := shelfOf(t, bed, "addressless", map[string]string{"node1": "", "node2": "", "node3": ""})
	if _, err := nowhere.FindImage(t.Context(), "trainer:1"); err == nil ||
		!strings.Contains(err.Error(), "node2, node3 of cluster") || strings.Contains(err.Error(), "node1") {
		t.Errorf("hosts without addresses: %v", err) // node1 is reached as the manager
	}
	none, _ := documentsOn(t, bed, "uncharted")
	_, err = none.FindImage(t.Context(), "trainer:1")
	if !errors.Is(err, engine.ErrNotFound) {
		t.Errorf("%v, not ErrNotFound", err)
	}
	_, err = none.RemoveImage(t.Context(), "trainer:1", other.ID)
	must(t, err)
}

// builtFrom returns the specification of an image that is built from files.
func builtFrom(t *testing.T, name string, files map[string]string) engine.ImageSpec {
	t.Helper()
	var content bytes.Buffer
	archive := tar.NewWriter(&content)
	for _, file := range slices.Sorted(maps.Keys(files)) {
		must(t,
			archive.WriteHeader(&tar.Header{
				Typeflag: tar.TypeReg, Name: file, Mode: 0o755, Size: int64(len(files[file])),
			}))
		_, err := archive.Write([]byte(files[file]))
		must(t, err)
	}
	must(t, archive.Close())
	return engine.ImageSpec{Name: name, Build: &engine.ImageBuild{
		Context:    func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(content.Bytes())), nil },
		Dockerfile: "Dockerfile", Source: fmt.Sprintf("source of %v", files),
	}}
}

func TestImagesFromBuilds(t *testing.T) { swarmtest.OnBeds(t, testImagesFromBuilds) }

func testImagesFromBuilds(t *testing.T, bed *testbed.Bed) {
	s := shelfOf(t, bed, "builds", nil)
	const dockerfile = "FROM scratch AS base\nARG VERSION=none\nLABEL version=$VERSION\nCOPY train /train\nFROM base AS test\nLABEL stage=test\n"
	spec := builtFrom(t, "builds/trainer:1", map[string]string{"sub/Dockerfile": dockerfile, "train": "first"})
	spec.Build.Dockerfile, spec.Build.Target, spec.Build.Args = "sub/Dockerfile", "base", map[string]string{
		"VERSION": "7",
	}
	first := s.provide(spec)
	inspected, err := s.bed.Nodes[2].Client().ImageInspect(t.Context(), s.id(2, first))
	must(t, err)
	want := map[string]string{"version": "7", images.LabelCluster: "builds", images.LabelSource: spec.Build.Source}
	if diff := cmp.Diff(want, inspected.Config.Labels); diff != "" {
		t.Errorf("labels (-want +got):\n%s", diff)
	}

	// What was built is not built again: neither after an apply that died, nor for a host that has lost it.
	unread := spec
	unread.Build = &engine.ImageBuild{Context: Nothing, Source: spec.Build.Source}
	s.remove(0, first)
	if again := s.provide(unread); again != first {
		t.Errorf("it was %s and is %s", first, again)
	}
	s.remove(2, first)
	unread.ID, unread.Replaces = first, map[string]string{"node1": first, "node2": first}
	s.provide(unread)

	changed := builtFrom(t, spec.Name, map[string]string{"Dockerfile": dockerfile, "train": "second"})
	second := s.provide(changed)
	if second == first {
		t.Error("another source gave the same image")
	}
	unread.ID, unread.Build.Source = "sha256:"+strings.Repeat("0", 64), "another"
	if _, err := s.ProvideImage(t.Context(), unread); err == nil || !strings.Contains(err.Error(), "plan again") {
		t.Errorf("an image that is gone since the plan: %v", err)
	}
	failing := builtFrom(t, "builds/failing:1",
		map[string]string{"Dockerfile": "FROM scratch\nLABEL a=b\nCOPY nothing /\n"})
	_, err = s.ProvideImage(t.Context(), failing)
	for _, phrase := range []string{
		`building image "builds/failing:1" on host node1`, "COPY failed", "Step 2/5 : LABEL a=b",
	} {
		if err == nil || !strings.Contains(err.Error(), phrase) {
			t.Errorf("a build that fails: %v, want %q", err, phrase)
		}
	}
	s.want(failing.Name, "", "", "")

	// An image that somebody else has under the name is not overwritten by a build.
	s.tag(1, second, "builds/failing:1")
	foreign := archived(t, "builds/foreign:1", "foreign")
	s.provide(foreign)
	foreign.Name, foreign.Archive, foreign.Build = "builds/foreign:1", nil, changed.Build
	foreign.ID = ""
	var taken *engine.ImageTakenError
	if _, err := s.ProvideImage(t.Context(), foreign); !errors.As(err, &taken) || taken.Wanted != "" {
		t.Errorf("a build under a name that is taken: %v", err)
	}
}

func TestImagesThatArePulled(t *testing.T) { swarmtest.OnBeds(t, testImagesThatArePulled) }

func testImagesThatArePulled(t *testing.T, bed *testbed.Bed) {
	s := shelfOf(t, bed, "pulls", nil)
	registry, host := openShop(t, s.bed, "")
	first := registry.sell(t, "1")
	name := host + "/trainer:1"

	if id := s.provide(engine.ImageSpec{Name: name}); id != first {
		t.Errorf("pulled %s, want %s", id, first)
	}
	requests := registry.asked()
	s.provide(engine.ImageSpec{Name: name, ID: first})
	s.provide(engine.ImageSpec{Name: name})
	if registry.asked() != requests {
		t.Error("the registry was asked for what is there")
	}

	// Though the tag has moved, all hosts get the same image.
	second := registry.sell(t, "1")
	s.remove(1, first)
	s.provide(engine.ImageSpec{Name: name, ID: first})

	// Without a planned ID, hosts with different images are an error.
	s.remove(1, first)
	t.Cleanup(func() { s.forget(second) })
	_, err := s.ProvideImage(t.Context(), engine.ImageSpec{Name: name})
	if err == nil ||
		!strings.Contains(err.Error(), fmt.Sprintf("host node1 has %s, host node2 has %s, host node3 has %s",
			s.id(0, first), s.id(1, second), s.id(2, first))) {
		t.Errorf("hosts with different images: %v", err)
	}
	s.provide(engine.ImageSpec{Name: name, ID: first, Replaces: map[string]string{"node2": second}})

	missing := host + "/trainer:nothing"
	if _, err := s.ProvideImage(t.Context(), engine.ImageSpec{Name: missing}); err == nil ||
		!strings.Contains(err.Error(), `host node3: pulling image "`+missing+`": `) {
		t.Errorf("an image that the registry has not: %v", err)
	}
}
