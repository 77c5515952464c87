package domain

import (
	"net"
	"slices"
	"strconv"
)

// The range of an agent's metrics port: it needs no root, and the next port, which is the controller's, must exist.
const (
	LowestMetricsPort  = 1024
	HighestMetricsPort = 65534
)

// MetricsPorts returns the ports that are reserved for Prometheus on each host: the agent's, and the controller's, as
// any host may run the controller. There are none if metrics are disabled.
func (a Agent) MetricsPorts() []int {
	if a.MetricsPort == 0 {
		return nil
	}
	return []int{a.MetricsPort, a.MetricsPort + 1}
}

// MetricsAddresses returns where a host's agent serves metrics, and where the controller does if it runs there, at the
// address by which hosts reach each other. Both are empty if metrics are disabled.
func (c Cluster) MetricsAddresses(host string) (agent, controller string) {
	ports := c.Agent.MetricsPorts()
	if ports == nil {
		return "", ""
	}
	at := func(port int) string { return net.JoinHostPort(c.Hosts[host].MemberAddress(), strconv.Itoa(port)) }
	return at(ports[0]), at(ports[1])
}

// CheckMetricsPorts adds a problem for each metrics port that is already in use on a host, except by this cluster
// itself according to its stored specification.
func (a Agent) CheckMetricsPorts(ps *Problems, host string, listening []int, stored Agent) {
	for i, port := range a.MetricsPorts() {
		if !slices.Contains(listening, port) || slices.Contains(stored.MetricsPorts(), port) {
			continue
		}
		who := "the host's agent"
		if i > 0 {
			who = "the controller, on the port after metrics_port,"
		}
		ps.Add(Path{"agent", "metrics_port"}, "Port in use",
			"metrics_port = %d: on host %q, port %d is already in use, but %s needs it to serve Prometheus. Choose "+
				"another port, or free it: sudo ss -tlnp 'sport = :%d' shows what uses it",
			a.MetricsPort, host, port, who, port)
	}
}

// validate adds what is wrong with the agent settings, regardless of the engine.
func (a Agent) validate(ps *Problems) {
	at := Path{"agent", "metrics_port"}
	switch {
	case a.MetricsPort == 0:
	case a.MetricsPort < LowestMetricsPort || a.MetricsPort > HighestMetricsPort:
		ps.Add(at, "Invalid port", "metrics_port = %d: must be between %d and %d, as agents serve Prometheus on that "+
			"port, and the controller on the next",
			a.MetricsPort, LowestMetricsPort, HighestMetricsPort)
	case a.Disabled:
		ps.Add(at, "No agents", "metrics_port = %d: there is hardly anything to serve without agents, which enabled "+
			"= false disables. Omit one of the two", a.MetricsPort)
	}
}
