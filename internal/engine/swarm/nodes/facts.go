package nodes

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/docker/docker/api/types/network"
	"github.com/docker/docker/api/types/swarm"
	"github.com/docker/docker/api/types/system"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/swarm/daemons"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/swarm/dockerapi"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/swarm/members"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/swarm/spec"
)

// Hosts are the hosts of a cluster, as nodes of the Swarm.
type Hosts struct {
	dockerapi.Swarm

	members members.Members
	daemons daemons.Daemons
}

// New returns the hosts of a cluster, on which its members and residents run.
func New(in dockerapi.Swarm, members members.Members, daemons daemons.Daemons) Hosts {
	return Hosts{in, members, daemons}
}

// facts are what was found out about a cluster's hosts. All decisions are made from facts alone, see [facts.plan].
type facts struct {
	// stored is the cluster as it was last stored; without hosts if it was not.
	stored domain.Cluster
	// joined are the hosts that Form added to the Swarm, or was about to, with the addresses of their Engines.
	joined map[string]string
	// missing is the reason why there is no Swarm to adopt; nil if there is one.
	missing error
	// nodes and networks are those that a manager lists.
	nodes    []swarm.Node
	networks []network.Summary
	// engines are the Engines of hosts that are not known to be nodes, by host; endpoint is the one at the cluster's
	// endpoint, if there is no Swarm and an endpoint is given.
	engines  map[string]answer
	endpoint *answer
	// inside are the Engines of hosts that are nodes, by host. They are only asked if a network is to be created, since
	// their own networks may conflict with it.
	inside map[string]answer
	// invalid are the errors in hosts' addresses, by host.
	invalid map[string]error
	// sockets are the socket paths that were found on hosts, by host, if they aren't the default one.
	sockets map[string]string
}

// answer is what an Engine reports about itself, or the error.
type answer struct {
	err      error
	info     system.Info
	networks []network.Summary
}

// look collects the facts about a cluster's hosts. If all of them are known nodes, three lists suffice, which a plan
// reads anyway.
func (e Hosts) look(ctx context.Context, cluster domain.Cluster) (*facts, error) {
	f := &facts{invalid: e.Connection.Learn(cluster.Hosts)}
	var err error
	if f.nodes, err = e.Reads.Nodes(ctx); errors.Is(err, dockerapi.ErrNoManager) {
		f.missing = err
		return f, e.askApart(ctx, f, cluster)
	}
	if err != nil {
		return nil, err
	}
	if f.networks, err = e.Reads.Networks(ctx); err != nil {
		return nil, err
	}
	document, err := engine.Cluster(ctx, e.Items)
	if err != nil && !errors.Is(err, engine.ErrNotFound) {
		return nil, err
	}
	f.stored = document.Spec
	f.joined = map[string]string{}
	for name, host := range f.stored.Hosts {
		if host.Joined {
			f.joined[name] = host.Address
		}
	}
	return f, e.askApart(ctx, f, cluster)
}

// askApart asks the Engines of the hosts that are not known to be nodes.
func (e Hosts) askApart(ctx context.Context, f *facts, cluster domain.Cluster) error {
	apart := map[string]string{}
	for name, host := range cluster.Hosts {
		if _, found := f.known(name); !found && host.Address != "" && f.invalid[name] == nil {
			apart[name] = host.Address
		}
	}
	f.engines = e.askEngines(ctx, apart)
	if f.missing != nil && cluster.Endpoint != "" {
		seen := e.askEngine(ctx, cluster.Endpoint)
		if seen.err != nil {
			return seen.err
		}
		f.endpoint = &seen
	}
	return ctx.Err()
}

// askEngines asks the Engines at some addresses, by host.
func (e Hosts) askEngines(ctx context.Context, addresses map[string]string) map[string]answer {
	var mu sync.Mutex
	answers := make(map[string]answer, len(addresses))
	// Errors are part of the answers.
	_ = dockerapi.InParallel(ctx, slices.Collect(maps.Keys(addresses)), func(ctx context.Context, name string) error {
		answered := e.askEngine(ctx, addresses[name])
		mu.Lock()
		defer mu.Unlock()
		answers[name] = answered
		return nil
	})
	return answers
}

// askPatience bounds the request to an Engine that nothing is known about yet.
const askPatience = 30 * time.Second

// askEngine asks the Engine at an address about itself and its networks.
func (e Hosts) askEngine(ctx context.Context, address string) (seen answer) {
	ctx, cancel := context.WithTimeout(ctx, askPatience)
	defer cancel()
	at, err := e.Connection.Client(address)
	if err != nil {
		return answer{err: err}
	}
	if seen.info, err = at.Info(ctx); err == nil {
		seen.networks, err = at.NetworkList(ctx, network.ListOptions{})
	}
	if err != nil {
		_, err = dockerapi.Explain(address, err)
	}
	seen.err = err
	return seen
}

// known returns the node of a host by its stored ID, or by its name.
func (f *facts) known(host string) (swarm.Node, bool) {
	return dockerapi.NodeOf(f.nodes, f.stored.Hosts, host)
}

// find returns the node of a host, by known or else as its own Engine reports.
func (f *facts) find(host string) (swarm.Node, bool) {
	if node, found := f.known(host); found {
		return node, true
	}
	if seen, found := f.engines[host]; found && seen.err == nil {
		return f.node(seen.info.Swarm.NodeID)
	}
	return swarm.Node{}, false
}

// node returns the node with this ID.
func (f *facts) node(id string) (swarm.Node, bool) {
	i := slices.IndexFunc(f.nodes, func(node swarm.Node) bool { return node.ID == id })
	if i < 0 {
		return swarm.Node{}, false
	}
	return f.nodes[i], true
}

// capacityOf returns the capacity of a node.
func capacityOf(node swarm.Node) domain.Capacity {
	return capacity(node.Description.Resources.NanoCPUs, node.Description.Resources.MemoryBytes)
}

func capacity(nano, memory int64) domain.Capacity {
	return domain.Capacity{CPUs: float64(nano) / spec.NanoCPUs, MemoryMiB: memory / spec.MiB}
}

// joinedLabel is the Swarm's own label that records which hosts were added to it for a cluster, as JSON: their names
// and the addresses of their Engines. It is written before a host joins, so that none is lost if the apply dies in
// between.
func joinedLabel(cluster string) string { return spec.LabelPrefix + cluster + ".joined" }

// readJoined adds the hosts in the Swarm's label to joined.
func readJoined(spec swarm.Spec, cluster string, joined map[string]string) error {
	text, found := spec.Labels[joinedLabel(cluster)]
	if !found {
		return nil
	}
	if err := json.Unmarshal([]byte(text), &joined); err != nil {
		return &engine.CorruptError{Where: "label " + joinedLabel(cluster) + " of the Swarm", Err: err}
	}
	return nil
}

// writeJoined returns the labels of a Swarm with the label for these hosts, or without it if there are none.
func writeJoined(labels map[string]string, cluster string, joined map[string]string) (map[string]string, error) {
	labels = maps.Clone(labels)
	if len(joined) == 0 {
		delete(labels, joinedLabel(cluster))
		return labels, nil
	}
	text, err := json.Marshal(joined)
	if err != nil {
		return nil, fmt.Errorf("label %s of the Swarm: %w", joinedLabel(cluster), err)
	}
	if labels == nil {
		labels = map[string]string{}
	}
	labels[joinedLabel(cluster)] = string(text)
	return labels, nil
}
