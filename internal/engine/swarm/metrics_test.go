//go:build linux

package swarm_test

import (
	"strings"
	"testing"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/swarm"
)

// TestNoPortForMetrics: a metrics port on the hosts is refused, and the error says where residents serve metrics
// without one.
func TestNoPortForMetrics(t *testing.T) {
	e, err := swarm.Open(domain.ClusterRef{Engine: swarm.Name, Name: "lab", Endpoint: "unix:///nowhere.sock"},
		engine.Settings{}, swarm.Program{})
	must(t, err)
	problems := e.Traits().CheckCluster(domain.Cluster{Name: "lab", Agent: domain.Agent{MetricsPort: 9465}})
	const want = `the engine "swarm" does not support metrics_port = 9465: on a Swarm, agents and the controller serve Prometheus metrics without it, ` +
		"only on the cluster's network, at trainyard-lab-agent:9465 and trainyard-lab-controller:9466"
	if len(problems) != 1 || problems[0].Path.String() != "agent.metrics_port" ||
		!strings.HasPrefix(problems[0].Detail, want) {
		t.Errorf("got %v, want one that says %q", problems, want)
	}
}
