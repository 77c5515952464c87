package prometheus

import (
	"net"
	"net/url"
	"strings"

	"github.com/prometheus/common/model"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
)

// hostLabels are the labels by which exporters name their host, most specific first, including those
// of Trainyard's own agents.
var hostLabels = []model.LabelName{"host", "node", "nodename", "Hostname", "instance"}

// hosts finds the hosts of a cluster that a series is about.
type hosts struct {
	// known maps names and addresses to the cluster's hosts. Several hosts may share a machine.
	known map[string][]string
	// nodes maps scrape addresses to the machines' own names.
	nodes map[string]string
}

// newHosts returns the hosts of a cluster; names are the series of node_uname_info.
func newHosts(cluster map[string]domain.Host, names model.Vector) hosts {
	h := hosts{known: map[string][]string{}, nodes: map[string]string{}}
	for name, host := range cluster {
		h.known[name] = append(h.known[name], name)
		if address := addressIn(host.Address); address != "" && address != name {
			h.known[address] = append(h.known[address], name)
		}
	}
	for _, sample := range names {
		h.nodes[addressIn(string(sample.Metric["instance"]))] = string(sample.Metric["nodename"])
	}
	return h
}

// of returns the names of the hosts that a series is about; none if that is no host of the cluster.
func (h hosts) of(series model.Metric) []string {
	for _, label := range hostLabels {
		address := addressIn(string(series[label]))
		for _, name := range []string{address, h.nodes[address]} {
			short, _, _ := strings.Cut(name, ".")
			if net.ParseIP(name) != nil {
				short = name
			}
			for _, alias := range []string{name, short} {
				if found := h.known[alias]; alias != "" && len(found) > 0 {
					return found
				}
			}
		}
	}
	return nil
}

// addressIn returns the host name or IP address in an address: "gpu1" for "gpu1:9100", "gpu1" and "ssh://ops@gpu1".
func addressIn(address string) string {
	if u, err := url.Parse(address); err == nil && u.Host != "" {
		return u.Hostname()
	}
	if host, _, err := net.SplitHostPort(address); err == nil {
		return host
	}
	return address
}
