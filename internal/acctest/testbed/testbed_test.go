//go:build linux

package testbed

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/mount"
	dockernetwork "github.com/docker/docker/api/types/network"
	"github.com/docker/docker/api/types/swarm"
	"github.com/docker/docker/api/types/system"
	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/trainyard/terraform-provider-trainyard/internal/acctest"
	"github.com/trainyard/terraform-provider-trainyard/internal/acctest/patience"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/swarm/image"
)

const (
	// peerProgram is the program of containers.
	peerProgram = "github.com/trainyard/terraform-provider-trainyard/internal/acctest/testbed/testdata/peer"
	// peerRef is its image.
	peerRef = "testbed/peer:1"
	// peerPort is where a peer answers.
	peerPort = "7000"
)

// three is the bed that most tests use.
var three = Options{Nodes: 3, Managers: 1}

func TestMain(m *testing.M) {
	if what := os.Getenv(ownerVariable); what != "" {
		own(what)
		return
	}
	acctest.Main(m, CloseShared)
}

// limited is the test's context with a timeout, for calls that may hang.
func limited(t testing.TB) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience.Limit)
	t.Cleanup(cancel)
	return ctx
}

// peerArchive is the image of testdata/peer as a docker-archive.
func peerArchive(t testing.TB) []byte {
	t.Helper()
	file, err := image.FromDisk("/bin/peer", acctest.Build(t, peerProgram))
	if err != nil {
		t.Fatal(err)
	}
	img, err := image.Build(v1.Config{Entrypoint: []string{"/bin/peer"}}, file)
	if err != nil {
		t.Fatal(err)
	}
	var archive bytes.Buffer
	if err := image.Write(&archive, peerRef, img); err != nil {
		t.Fatal(err)
	}
	return archive.Bytes()
}

// loadPeer loads the image of testdata/peer onto all nodes of a bed.
func loadPeer(t testing.TB, bed *Bed) {
	t.Helper()
	if err := bed.Load(limited(t), peerRef, peerArchive(t)); err != nil {
		t.Fatal(err)
	}
}

// runPeers runs a peer on each of the first nodes of a Swarm, in an overlay network, until the test ends. It returns
// when they answer.
func runPeers(t testing.TB, bed *Bed, name string, nodes int) {
	t.Helper()
	ctx, manager := limited(t), bed.Nodes[0].Client()
	loadPeer(t, bed)
	overlay, err := manager.NetworkCreate(ctx, name, dockernetwork.CreateOptions{Driver: "overlay"})
	if err != nil {
		t.Fatal(err)
	}
	replicas := uint64(nodes) //nolint:gosec // a few
	service, err := manager.ServiceCreate(ctx, swarm.ServiceSpec{
		Annotations: swarm.Annotations{Name: name},
		Mode:        swarm.ServiceMode{Replicated: &swarm.ReplicatedService{Replicas: &replicas}},
		EndpointSpec: &swarm.EndpointSpec{Mode: swarm.ResolutionModeDNSRR, Ports: []swarm.PortConfig{{
			TargetPort: 7000, PublishedPort: 7000, PublishMode: swarm.PortConfigPublishModeHost,
		}}},
		TaskTemplate: swarm.TaskSpec{
			ContainerSpec: &swarm.ContainerSpec{
				Image: peerRef,
				Env:   []string{"NODE={{.Node.Hostname}}"},
				Mounts: []mount.Mount{
					{Type: mount.TypeBind, Source: "/var/run/docker.sock", Target: "/var/run/docker.sock"},
				},
			},
			Networks:  []swarm.NetworkAttachmentConfig{{Target: overlay.ID}},
			Placement: &swarm.Placement{MaxReplicas: 1},
		},
	}, swarm.ServiceCreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience.Limit)
		defer cancel()
		if err := manager.ServiceRemove(ctx, service.ID); err != nil {
			t.Error(err)
		}
		acctest.Eventually(t, "the service's network to go", func() bool {
			return manager.NetworkRemove(ctx, overlay.ID) == nil
		})
	})
	for _, node := range bed.Nodes[:nodes] {
		acctest.Eventually(t, "the peer on "+node.Name, func() bool {
			answer, err := ask(ctx, bed, node, "name")
			return err == nil && answer == node.Name
		})
	}
}

// ask queries the peer on a node, from another machine in the bed's network.
func ask(ctx context.Context, bed *Bed, node *Node, question string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	connection, err := bed.DialContext(ctx, "tcp", node.Address.String()+":"+peerPort)
	if err != nil {
		return "", err
	}
	defer connection.Close()
	context.AfterFunc(ctx, func() { connection.Close() })
	if _, err := fmt.Fprintln(connection, question); err != nil {
		return "", err
	}
	answer, err := io.ReadAll(connection)
	return strings.TrimSpace(string(answer)), err
}

func TestSwarm(t *testing.T) {
	t.Parallel()
	bed := New(t, Options{Nodes: 4, Managers: 3})
	ctx := limited(t)
	want := []string{
		"node1 10.200.0.1 manager ready",
		"node2 10.200.0.2 manager ready",
		"node3 10.200.0.3 manager ready",
		"node4 10.200.0.4 worker ready",
	}
	// A node that a busy machine kept silent is briefly down, or makes the managers elect another leader.
	acctest.Eventually(t, "the Swarm's nodes to be "+strings.Join(want, ", "), func() bool {
		members, err := bed.Nodes[0].Client().NodeList(ctx, swarm.NodeListOptions{})
		var got []string
		for _, member := range members {
			got = append(got,
				fmt.Sprintf("%s %s %s %s", member.Description.Hostname, member.Status.Addr, member.Spec.Role,
					member.Status.State))
		}
		slices.Sort(got)
		return err == nil && slices.Equal(got, want)
	})
	ids := map[string]string{}
	for _, node := range bed.Nodes {
		info, err := node.Client().Info(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if info.Name != node.Name {
			t.Errorf("the engine behind the socket of %s is that of %s", node.Name, info.Name)
		}
		wantEngine(t, node, info)
		if other, taken := ids[info.ID]; taken {
			t.Errorf("%s and %s have the same engine ID %s", other, node.Name, info.ID)
		}
		ids[info.ID] = node.Name
	}
}

// wantEngine fails unless a node runs its Engine with its image store.
func wantEngine(t *testing.T, node *Node, info system.Info) {
	t.Helper()
	driver := "overlay2"
	if node.Engine.Containerd {
		driver = "overlayfs" // as containerd names it
	}
	if info.Driver != driver {
		t.Errorf("%s stores images by %s, not by %s", node.Name, info.Driver, driver)
	}
	is26 := strings.HasPrefix(info.ServerVersion, "26.1.")
	if node.Engine.Debian13 && !is26 {
		t.Errorf("%s runs Engine %s, not 26.1", node.Name, info.ServerVersion)
	}
}

// TestMixed: nodes with different Engines form one Swarm.
func TestMixed(t *testing.T) {
	bed := Shared(t, Options{Nodes: 3, Managers: 1, Mixed: true})
	for i, node := range bed.Nodes {
		if node.Engine != mixed[i] {
			t.Errorf("%s is to run %+v, not %+v", node.Name, node.Engine, mixed[i])
		}
		info, err := node.Client().Info(limited(t))
		if err != nil {
			t.Fatal(err)
		}
		wantEngine(t, node, info)
	}
	runPeers(t, bed, "mixed", 3)
}

func TestChosenEngine(t *testing.T) {
	for name, want := range Engines {
		t.Setenv(EngineVariable, name)
		if got, err := (Options{}).chosen(); err != nil || got != want {
			t.Errorf("%q chooses %+v (%v), want %+v", name, got, err, want)
		}
	}
	if got, err := (Options{Engine: "containerd"}).chosen(); err != nil || got != Engines["containerd"] {
		t.Errorf("a bed with an Engine of its own has %+v (%v)", got, err)
	}
	t.Setenv(EngineVariable, "19.03")
	if _, err := (Options{}).chosen(); err == nil ||
		!strings.Contains(err.Error(), `TRAINYARD_TEST_ENGINE="19.03": allowed are 26.1,`) {
		t.Errorf("an unknown Engine: %v", err)
	}
}

func TestServiceAcrossNodes(t *testing.T) {
	bed := Shared(t, three)
	runPeers(t, bed, "across", 3)
	ctx := limited(t)
	for _, node := range bed.Nodes {
		acctest.Eventually(t, "all peers to be known to the one on "+node.Name, func() bool {
			answer, err := ask(ctx, bed, node, "peers across")
			names := strings.Fields(answer)
			slices.Sort(names)
			return err == nil && slices.Equal(names, []string{"node1", "node2", "node3"})
		})
		var answer string
		acctest.Eventually(t, "the engine of "+node.Name+" to be known to its peer", func() bool {
			var err error
			answer, err = ask(ctx, bed, node, "engine")
			return err == nil
		})
		var engine struct{ Name string }
		if err := json.Unmarshal([]byte(answer), &engine); err != nil {
			t.Fatalf("%v in %q", err, answer)
		}
		if engine.Name != node.Name {
			t.Errorf("/var/run/docker.sock on %s is the engine of %q", node.Name, engine.Name)
		}
	}
}

func TestTwoBeds(t *testing.T) {
	ctx := limited(t)
	beds := []*Bed{Shared(t, three), New(t, Options{Nodes: 2, Managers: 1})}
	swarms := map[string]bool{}
	for _, bed := range beds {
		info, err := bed.Nodes[1].Client().Info(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if want := netip.MustParseAddr("10.200.0.2"); bed.Nodes[1].Address != want ||
			info.Swarm.NodeAddr != want.String() {
			t.Errorf("%s has address %s, and %s in its Swarm; want %s", info.Name, bed.Nodes[1].Address,
				info.Swarm.NodeAddr, want)
		}
		formed, err := bed.Nodes[0].Client().SwarmInspect(ctx)
		if err != nil {
			t.Fatal(err)
		}
		swarms[formed.ID] = true
	}
	if len(swarms) != len(beds) {
		t.Errorf("%d beds have %d Swarms", len(beds), len(swarms))
	}
	if Shared(t, three) != beds[0] {
		t.Error("a shared bed is not shared")
	}
}

func TestEnginesWithoutSwarm(t *testing.T) {
	bed := New(t, Options{Nodes: 1})
	info, err := bed.Nodes[0].Client().Info(limited(t))
	if err != nil {
		t.Fatal(err)
	}
	if info.Swarm.LocalNodeState != swarm.LocalNodeStateInactive {
		t.Errorf("a bed without managers has a Swarm: %s", info.Swarm.LocalNodeState)
	}
}

func TestLoad(t *testing.T) {
	bed := Shared(t, three)
	ctx := limited(t)
	loadPeer(t, bed)
	ids := map[string]bool{}
	for _, node := range bed.Nodes {
		inspected, err := node.Client().ImageInspect(ctx, peerRef)
		if err != nil {
			t.Fatal(err)
		}
		ids[inspected.ID] = true
	}
	if len(ids) != 1 {
		t.Errorf("the nodes have the image under different IDs: %v", ids)
	}
	for name, archive := range map[string][]byte{
		"garbage":      []byte("no archive"),
		"cut off":      peerArchive(t)[:1<<20],
		"another name": peerArchive(t),
	} {
		t.Run(name, func(t *testing.T) {
			err := bed.Load(ctx, "testbed/other:1", archive)
			if err == nil || !strings.Contains(err.Error(), "testbed/other:1") {
				t.Errorf("loading it gives error %v", err)
			}
		})
	}
}

func TestClose(t *testing.T) {
	SkipIfShort(t)
	bed, err := Start(limited(t), Options{Nodes: 1, TLS: true})
	if err != nil {
		t.Fatal(err)
	}
	loadPeer(t, bed)
	runContainer(t, bed.Nodes[0])
	inits := processes(t, bed)
	groups := controlGroups(t, bed.folder.name())
	if len(inits) == 0 || len(groups) == 0 {
		t.Fatalf("the bed has processes %v and control groups %v", inits, groups)
	}
	for range 2 {
		if err := bed.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := bed.DialContext(limited(t), "tcp", gateway.String()+":1"); !errors.Is(err, net.ErrClosed) {
		t.Errorf("dialling in a closed bed: %v", err)
	}
	if left := processes(t, bed); len(left) != 0 {
		t.Errorf("processes are left: %v", left)
	}
	if left := controlGroups(t, bed.folder.name()); len(left) != 0 {
		t.Errorf("control groups are left: %v", left)
	}
	if _, err := os.Stat(bed.folder.path); !os.IsNotExist(err) {
		t.Errorf("the folder is left: %v", err)
	}
}

// runContainer runs a peer outside of a Swarm.
func runContainer(t testing.TB, node *Node) {
	t.Helper()
	created, err := node.Client().ContainerCreate(t.Context(), &container.Config{Image: peerRef}, nil, nil, nil, "")
	if err != nil {
		t.Fatal(err)
	}
	if err := node.Client().ContainerStart(t.Context(), created.ID, container.StartOptions{}); err != nil {
		t.Fatal(err)
	}
}

// processes are the command lines of the processes related to the bed's folder.
func processes(t testing.TB, bed *Bed) []string {
	t.Helper()
	names, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, name := range names {
		line, err := os.ReadFile(name)
		if err == nil && bytes.Contains(line, []byte(bed.folder.path)) {
			found = append(found, string(bytes.ReplaceAll(line, []byte{0}, []byte(" "))))
		}
	}
	return found
}

// controlGroups are the control groups of the bed with this name.
func controlGroups(t testing.TB, name string) []string {
	t.Helper()
	var found []string
	for _, pattern := range []string{"/sys/fs/cgroup/", "/sys/fs/cgroup/*/"} {
		groups, err := filepath.Glob(pattern + name)
		if err != nil {
			t.Fatal(err)
		}
		found = append(found, groups...)
	}
	return found
}
