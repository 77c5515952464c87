package telemetry

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/trainyard/terraform-provider-trainyard/internal/bounded"
)

const (
	// PeerPort is where the agents of a cluster answer each other on its network.
	PeerPort = 9464
	// MetricsPort is where they answer Prometheus.
	MetricsPort = 9465
	// ControllerMetricsPort is where the controller of a cluster does, on the same network.
	ControllerMetricsPort = 9466

	// peersAtOnce bounds how many are asked at a time, and peerPatience how long one may take.
	peersAtOnce  = 16
	peerPatience = 5 * time.Second
)

// Reports are what the agents of a cluster told.
type Reports struct {
	// Reports are by what the agents' nodes are called.
	Reports map[string]Report `json:"reports"`
	// Failures say of agents that did not tell why, by their addresses.
	Failures map[string]string `json:"failures,omitempty"`
}

// ListenToPeers listens for other agents of the cluster at an address, which have to show the identity that is in a file.
func ListenToPeers(address, identityFile string) (net.Listener, error) {
	settings, err := readIdentity(identityFile)
	if err != nil {
		return nil, err
	}
	return tls.Listen("tcp", address, settings)
}

func readIdentity(file string) (*tls.Config, error) {
	identity, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("the identity of the cluster's agents can't be read: %w", err)
	}
	return mutual(identity)
}

// AskPeers asks all agents that a name stands for, on the network of the cluster. It takes as long as the slowest, and no longer than a few
// seconds.
func AskPeers(ctx context.Context, name, identityFile string, q Query) (Reports, error) {
	settings, err := readIdentity(identityFile)
	if err != nil {
		return Reports{}, err
	}
	resolver := &net.Resolver{PreferGo: true} // an image without a C library's services has no other
	addresses, err := resolver.LookupHost(ctx, name)
	if err != nil {
		return Reports{}, fmt.Errorf("the cluster's agents are not found on its network: %w", err)
	}
	return askAll(ctx, addresses, PeerPort, settings, q), nil
}

func askAll(ctx context.Context, addresses []string, port int, settings *tls.Config, q Query) Reports {
	transport := &http.Transport{TLSClientConfig: settings, DisableKeepAlives: true, MaxResponseHeaderBytes: bounded.Headers}
	client := &http.Client{Transport: transport, Timeout: peerPatience}
	found := Reports{Reports: map[string]Report{}, Failures: map[string]string{}}
	var mu sync.Mutex
	room := bounded.Reports
	var all errgroup.Group
	all.SetLimit(peersAtOnce)
	for _, address := range addresses {
		all.Go(func() error {
			text, err := ask(ctx, client, "https://"+net.JoinHostPort(address, fmt.Sprint(port)), q)
			mu.Lock()
			defer mu.Unlock()
			if room -= len(text); err == nil && room < 0 {
				err = fmt.Errorf("the answers of all agents have %w", &bounded.Error{Most: bounded.Reports})
			}
			var report Report
			if err == nil {
				report, err = ReadReport(text)
			}
			if err != nil {
				found.Failures[address] = err.Error()
				return nil
			}
			found.Reports[report.Node] = report
			return nil
		})
	}
	_ = all.Wait() // what fails is noted
	return found
}

// ReadReports reads what an agent told that asked others.
func ReadReports(text []byte) (Reports, error) {
	var reports Reports
	if err := json.Unmarshal(text, &reports); err != nil {
		return Reports{}, fmt.Errorf("the agent's reports %.100q can't be read: %w", text, err)
	}
	return reports, nil
}
