package swarm

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/docker/docker/api/types/swarm"
	"github.com/google/go-cmp/cmp"

	"github.com/trainyard/terraform-provider-trainyard/internal/acctest/testbed"
	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/swarm/dockerapi"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/swarm/spec"
)

var (
	// three is a bed of a manager and two workers. mixed is one with different Engines and image stores.
	three = testbed.Options{Nodes: 3, Managers: 1}
	mixed = testbed.Options{Nodes: 3, Managers: 1, Mixed: true}
)

// threeOf is a bed of a manager and two workers with an Engine.
func threeOf(t *testing.T, engine string) *testbed.Bed {
	t.Helper()
	options := three
	options.Engine = engine
	return testbed.Shared(t, options)
}

// onBeds runs a test on nodes with the same Engine, for each Engine, and on mixed ones.
func onBeds(t *testing.T, run func(t *testing.T, bed *testbed.Bed)) {
	t.Helper()
	testbed.OnEngines(t, func(t *testing.T, engine string) {
		t.Parallel()
		run(t, threeOf(t, engine))
	})
	t.Run("mixed", func(t *testing.T) {
		t.Parallel()
		run(t, testbed.Shared(t, mixed))
	})
}

// lastSubnet numbers the subnets of clusters on shared beds: those of other tests begin at 10.100.
var lastSubnet atomic.Int32

// ownSubnet returns the first half of the addresses of a subnet that no other test has, such as 10.71.
func ownSubnet() string { return fmt.Sprintf("10.%d", 70+lastSubnet.Add(1)) }

// documentsOf returns an engine for the items of a cluster of its own, and the proxy through which it reaches its manager. A
// second one on the same cluster is another run that comes in between.
func documentsOf(t *testing.T, cluster string) (*Engine, *testbed.Proxy) {
	t.Helper()
	return documentsOn(t, testbed.Shared(t, three), cluster)
}

// documentsOn is documentsOf for a given bed.
func documentsOn(t *testing.T, bed *testbed.Bed, cluster string) (*Engine, *testbed.Proxy) {
	t.Helper()
	manager := bed.Nodes[0]
	proxy := testbed.NewProxy(t, manager)
	e, err := Open(domain.ClusterRef{Engine: Name, Name: cluster, Endpoint: proxy.Host()}, engine.Settings{}, Program{})
	must(t, err)
	t.Cleanup(func() {
		proxy.Reset()
		must(t, deleteItems(context.WithoutCancel(t.Context()), e))
		wantObjects(t, e)
	})
	return e, proxy
}

// deleteItems deletes all that is stored of an engine's cluster.
func deleteItems(ctx context.Context, e *Engine) error {
	return engine.Delete[domain.ClusterDocument](ctx, e, "")
}

// stored has a cluster's document written.
func stored(t *testing.T, cluster string) (*Engine, *testbed.Proxy) {
	t.Helper()
	e, proxy := documentsOf(t, cluster)
	_, err := engine.Put(t.Context(), e, domain.ClusterDocument{Spec: domain.Cluster{Name: cluster, Engine: Name}})
	must(t, err)
	return e, proxy
}

// groupOf returns a new document of a group.
func groupOf(e *Engine, name string) domain.GroupDocument {
	return domain.GroupDocument{Spec: domain.Group{Cluster: e.cluster.Name, Name: name}}
}

// written returns a group's document after a number of writes.
func written(t *testing.T, e *Engine, group string, writes int) domain.GroupDocument {
	t.Helper()
	doc := groupOf(e, group)
	for range writes {
		var err error
		doc, err = engine.Put(t.Context(), e, doc)
		must(t, err)
	}
	return doc
}

// wantObjects checks which config objects the cluster has, by kind, name and revision.
func wantObjects(t *testing.T, e *Engine, want ...string) {
	t.Helper()
	configs, err := e.connection.ConfigsWith(dockerapi.Labelled(spec.LabelCluster, e.cluster.Name))(context.WithoutCancel(t.Context())) // a test's end looks, too
	must(t, err)
	found := map[string]bool{}
	for _, config := range configs {
		labels := config.Spec.Labels
		found[strings.Join(strings.Fields(labels[spec.LabelKind]+" "+labels[spec.LabelName]+" "+labels[spec.LabelRevision]), " ")] = true
	}
	expected := map[string]bool{}
	for _, object := range want {
		expected[object] = true
	}
	if diff := cmp.Diff(expected, found); diff != "" {
		t.Errorf("config objects (-want +got):\n%s", diff)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// before has something happen before a call reaches the engine.
func before(do func()) testbed.Action {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			do()
			next.ServeHTTP(w, r)
		})
	}
}

var (
	creation = testbed.Matching(http.MethodPost, "/configs/create")
	update   = testbed.Matching(http.MethodPost, "/configs/*/update")
	removal  = testbed.Matching(http.MethodDelete, "/configs/*")
	listing  = testbed.Matching(http.MethodGet, "/configs")
)

func wantNotFound(t *testing.T, err error) {
	t.Helper()
	if !errors.Is(err, engine.ErrNotFound) {
		t.Errorf("%v, not ErrNotFound", err)
	}
}

func wantConflict(t *testing.T, err error) {
	t.Helper()
	if !errors.Is(err, engine.ErrConflict) {
		t.Errorf("%v, not ErrConflict", err)
	}
}

// leave creates a config object, which goes with the cluster's or with the test.
func leave(t *testing.T, e *Engine, spec swarm.ConfigSpec) {
	t.Helper()
	m, err := e.connection.Manager(t.Context())
	must(t, err)
	created, err := m.ConfigCreate(t.Context(), spec)
	must(t, err)
	t.Cleanup(func() { must(t, e.connection.RemoveConfig(context.WithoutCancel(t.Context()), created.ID)) })
}
