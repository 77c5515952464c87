//go:build linux

package process_test

import (
	"fmt"
	"net"
	"strings"
	"testing"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/process"
)

// TestMetricsPortInUse: a Prometheus port on which somebody else listens is a problem at plan.
func TestMetricsPortInUse(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	defer listener.Close()
	at, is := listener.Addr().(*net.TCPAddr)
	if !is {
		t.Fatalf("it listens at %v", listener.Addr())
	}
	port := at.Port
	e, err := process.Open(domain.ClusterRef{Name: "lab"}, engine.Settings{StateDir: t.TempDir()}, process.Program{})
	must(t, err)
	_, problems, err := e.Complete(t.Context(),
		domain.Cluster{Name: "lab", Engine: process.Name, Agent: domain.Agent{MetricsPort: port}})
	must(t, err)
	says := problems.Err()
	if says == nil || !strings.Contains(says.Error(), "agent.metrics_port: ") ||
		!strings.Contains(says.Error(), fmt.Sprintf("port %d is already in use", port)) {
		t.Errorf("with port %d in use: %v", port, says)
	}
}
