package telemetry

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/trainyard/terraform-provider-trainyard/internal/bounded"
)

const (
	// PeerPort is the port of a cluster's agents for each other, on its network.
	PeerPort = 9464
	// MetricsPort is their port for Prometheus.
	MetricsPort = 9465
	// ControllerMetricsPort is the port for Prometheus of a cluster's controller, on the same network.
	ControllerMetricsPort = 9466

	// peersAtOnce bounds the concurrent queries, and peerPatience the time for each.
	peersAtOnce  = 16
	peerPatience = 5 * time.Second
)

// Peer is an agent to query: its node, and the address that the engine gave it on the cluster's network.
type Peer struct {
	Node, Address string
}

// ParsePeer parses node=address, as [Peer.String] writes it.
func ParsePeer(text string) (Peer, error) {
	node, address, found := strings.Cut(text, "=")
	if !found || node == "" || address == "" {
		return Peer{}, fmt.Errorf("%q is not of the form node=address", text)
	}
	return Peer{node, address}, nil
}

// String returns node=address.
func (p Peer) String() string { return p.Node + "=" + p.Address }

// Reports are what the agents of a cluster reported.
type Reports struct {
	// Reports are by the agents' nodes.
	Reports map[string]Report `json:"reports"`
	// Failures are the reasons for missing reports, by node.
	Failures map[string]string `json:"failures,omitempty"`
}

// ListenToPeers listens at an address for other agents of the cluster, which must have one of the keys in a folder.
func ListenToPeers(address, folder string) (net.Listener, error) {
	keys, err := readKeys(folder)
	if err != nil {
		return nil, err
	}
	return tls.Listen("tcp", address, keys.server())
}

// AskPeers queries other agents, using the keys in a folder. It takes as long as the slowest, at most some seconds.
func AskPeers(ctx context.Context, peers []Peer, folder string, q Query) (Reports, error) {
	keys, err := readKeys(folder)
	if err != nil {
		return Reports{}, err
	}
	return askAll(ctx, peers, PeerPort, keys, q), nil
}

func askAll(ctx context.Context, peers []Peer, port int, keys keyring, q Query) Reports {
	transport := &http.Transport{
		DialTLSContext: keys.dial, DisableKeepAlives: true, MaxResponseHeaderBytes: bounded.Headers,
	}
	client := &http.Client{Transport: transport, Timeout: peerPatience}
	found := Reports{Reports: map[string]Report{}, Failures: map[string]string{}}
	var mu sync.Mutex
	room := bounded.Reports
	var all errgroup.Group
	all.SetLimit(peersAtOnce)
	for _, peer := range peers {
		all.Go(func() error {
			text, err := ask(ctx, client, "https://"+net.JoinHostPort(peer.Address, fmt.Sprint(port)), q)
			mu.Lock()
			defer mu.Unlock()
			if room -= len(text); err == nil && room < 0 {
				err = fmt.Errorf("the answers of all agents have %w", &bounded.Error{Most: bounded.Reports})
			}
			var report Report
			if err == nil {
				report, err = peer.read(text)
			}
			if err != nil {
				found.Failures[peer.Node] = err.Error()
				return nil
			}
			found.Reports[peer.Node] = report
			return nil
		})
	}
	_ = all.Wait() // errors are in the reports
	return found
}

// read reads the peer's report. All agents have the same key, so only the address shows whose report it is.
func (p Peer) read(text []byte) (Report, error) {
	report, err := ReadReport(text)
	if err == nil && report.Node != p.Node {
		err = fmt.Errorf("the agent at %s, of node %s, claims to be node %.100q", p.Address, p.Node, report.Node)
	}
	return report, err
}

// ReadReports reads the output of an agent that queried others.
func ReadReports(text []byte) (Reports, error) {
	var reports Reports
	if err := json.Unmarshal(text, &reports); err != nil {
		return Reports{}, fmt.Errorf("parsing the agent's reports %.100q: %w", text, err)
	}
	return reports, nil
}
