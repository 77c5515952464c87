//go:build linux

package swarmtest

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/docker/docker/api/types/swarm"
	"github.com/google/go-cmp/cmp"

	"github.com/trainyard/terraform-provider-trainyard/internal/acctest"
	"github.com/trainyard/terraform-provider-trainyard/internal/acctest/testbed"
	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/swarm/dockerapi"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/swarm/spec"
)

var (
	// One is a bed of a single manager.
	One = testbed.Options{Nodes: 1, Managers: 1, Heartbeat: testbed.Steady}
	// Three is a bed of a manager and two workers.
	Three = testbed.Options{Nodes: 3, Managers: 1, Heartbeat: testbed.Steady}
	// Mixed is one of three with different Engines and image stores.
	Mixed = testbed.Options{Nodes: 3, Managers: 1, Heartbeat: testbed.Steady, Mixed: true}
)

// ThreeOf is a bed of a manager and two workers with this Engine.
func ThreeOf(t *testing.T, engine string) *testbed.Bed {
	t.Helper()
	options := Three
	options.Engine = engine
	return testbed.Shared(t, options)
}

// OnBeds runs a test on nodes with the same Engine, for each Engine, and on mixed ones.
func OnBeds(t *testing.T, run func(t *testing.T, bed *testbed.Bed)) {
	t.Helper()
	testbed.OnEngines(t, func(t *testing.T, engine string) {
		t.Parallel()
		run(t, ThreeOf(t, engine))
	})
	t.Run("mixed", func(t *testing.T) {
		t.Parallel()
		run(t, testbed.Shared(t, Mixed))
	})
}

// subnets counts the subnets that clusters on shared beds got.
var subnets atomic.Uint32

// OwnSubnet returns the first two bytes of a subnet that no other test has, such as 10.131. There are 69, between
// 10.64.0.0/10, from which the engine chooses undeclared ones, and the bed's own: repeated tests get them in turn.
func OwnSubnet() string { return fmt.Sprintf("10.%d", 131+(subnets.Add(1)-1)%69) }

// MemberImage is the image of the members' program on shared beds.
const MemberImage = "trainyard/member:faults"

var (
	loadMutex sync.Mutex
	loaded    = map[*testbed.Bed]bool{}
)

// LoadMember loads [MemberImage] on a shared bed, once.
func LoadMember(t *testing.T, bed *testbed.Bed) {
	t.Helper()
	loadMutex.Lock()
	defer loadMutex.Unlock()
	if !loaded[bed] {
		acctest.LoadMember(t, bed, MemberImage)
		loaded[bed] = true
	}
}

// Connect returns the connection of a cluster to the Swarm of a bed, and the proxy through which it reaches its
// manager.
func Connect(t *testing.T, bed *testbed.Bed, cluster string) (*dockerapi.Connection, *testbed.Proxy) {
	t.Helper()
	proxy := testbed.NewProxy(t, bed.Nodes[0])
	c, err := dockerapi.New(domain.ClusterRef{Engine: dockerapi.EngineName, Name: cluster, Endpoint: proxy.Host()},
		engine.Settings{})
	Must(t, err)
	return c, proxy
}

// Leave creates a config object, which is removed with the cluster's or at the end of the test.
func Leave(t *testing.T, c *dockerapi.Connection, config swarm.ConfigSpec) {
	t.Helper()
	m, err := c.Manager(t.Context())
	Must(t, err)
	created, err := m.ConfigCreate(t.Context(), config)
	Must(t, err)
	t.Cleanup(func() { Must(t, c.RemoveConfig(context.WithoutCancel(t.Context()), created.ID)) })
}

// WantObjects checks which config objects a cluster has, by kind, name and revision.
func WantObjects(t *testing.T, c *dockerapi.Connection, cluster string, want ...string) {
	t.Helper()
	// also called at the end of a test
	configs, err := c.ConfigsWith(dockerapi.Labelled(spec.LabelCluster, cluster))(context.WithoutCancel(t.Context()))
	Must(t, err)
	found := map[string]bool{}
	for _, config := range configs {
		labels := config.Spec.Labels
		found[strings.Join(strings.Fields(
			labels[spec.LabelKind]+" "+labels[spec.LabelName]+" "+labels[spec.LabelRevision],
		),
			" ")] = true
	}
	expected := map[string]bool{}
	for _, object := range want {
		expected[object] = true
	}
	if diff := cmp.Diff(expected, found); diff != "" {
		t.Errorf("config objects (-want +got):\n%s", diff)
	}
}

// Before calls do before a call reaches the engine.
func Before(do func()) testbed.Action {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			do()
			next.ServeHTTP(w, r)
		})
	}
}

// The requests about config objects.
var (
	Creation = testbed.Matching(http.MethodPost, "/configs/create")
	Update   = testbed.Matching(http.MethodPost, "/configs/*/update")
	Removal  = testbed.Matching(http.MethodDelete, "/configs/*")
	Listing  = testbed.Matching(http.MethodGet, "/configs")
)
