//go:build linux

package systems_test

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/trainyard/terraform-provider-trainyard/internal/acceptance"
)

// The example at the start of the README runs as it is, except for its ports. A killed broker comes back with its data,
// a removed one shows in the plan and is restored, the data survives a destroy, and properties can change with data.
func TestSystemKafka(t *testing.T) {
	t.Parallel()
	l := newKafka(t)
	config := func(further ...string) {
		l.Write("main.tf", l.beside(readmeOf(t, "kafka"), further...)+`
output "cluster_id" { value = module.kafka.cluster_id }
`)
	}
	config()
	l.Must("get")
	l.Must("apply", "-auto-approve")
	l.connect()
	now := l.await("three brokers", 3)
	if want := l.Must("output", "-raw", "cluster_id"); now.Cluster != want {
		t.Errorf("Kafka's cluster is %s, want %s", now.Cluster, want)
	}
	if got := now.Brokers.NodeIDs(); !slices.Equal(got, []int32{0, 1, 2}) {
		t.Errorf("the brokers are %d, want their indexes", got)
	}
	l.create("events", -1)
	l.create("single", 1)
	now = l.await("both topics", 3)
	if got, want := owned(now, "events"), map[int32]int{0: 3, 1: 3, 2: 3}; !maps.Equal(got, want) {
		t.Errorf("the brokers have %v copies of events, want %v", got, want)
	}
	l.write("events")
	l.write("single")
	l.expectAll("events", "in the beginning")
	l.expectMinISR("events", 2)
	l.ExpectNoChange("while it runs")

	l.kill("kafka-broker-1")
	l.write("events") // two replicas are enough
	l.await("the broker that was killed, in sync", 3)
	l.expectAll("single", "after a broker was killed")
	l.expectAll("events", "after a broker was killed")
	l.ExpectNoChange("after a broker was killed")

	l.lose("kafka-broker-2")
	plan, err := l.Run("plan", "-detailed-exitcode")
	updates := acceptance.Says("module.kafka.trainyard_group.this will be updated in-place", "1 to change")
	if err == nil || !updates.MatchString(plan) {
		t.Errorf("the plan does not show that a broker is missing, and nothing else: %v\n%s", err, plan)
	}
	l.Must("apply", "-auto-approve")
	l.await("the broker that was gone, in sync", 3)
	l.write("events")
	l.ExpectNoChange("after the drift was mended")

	l.Must("destroy", "-auto-approve")
	config("  replication_factor = 2\n")
	l.Must("apply", "-auto-approve")
	l.await("the brokers, after a destroy", 3)
	l.expectMinISR("events", 1) // what server.properties has now
	l.expectAll("events", "after a destroy")
	l.expectAll("single", "after a destroy")

	l.Must("destroy", "-auto-approve")
	l.must(os.RemoveAll(filepath.Join(l.StateDir, "lab", "work"))) // the data is the user's to remove
	l.ExpectNobody("after the destroy")
}
