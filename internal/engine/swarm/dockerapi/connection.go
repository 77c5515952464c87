package dockerapi

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/swarm"
	"github.com/docker/docker/client"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
)

// Manager is the API of a manager of the Swarm.
type Manager = client.APIClient

// Connection reaches the Engines of a cluster, each at its endpoint, and keeps the clients that it has opened.
type Connection struct {
	cluster string
	// Settings are those that it was opened with.
	Settings engine.Settings
	// endpoints lead to managers, the preferred one first.
	endpoints []string

	mu      sync.Mutex
	clients map[string]*client.Client
	// managing is the client of the manager that answered last.
	managing *client.Client
	// all are the addresses of all hosts of the cluster; nil if some are not known.
	all []string
	// sockets are the socket paths that were found on hosts, by address.
	sockets map[string]string
}

// New returns the connection to the Swarm of a cluster, without any I/O.
func New(cluster domain.ClusterRef, settings engine.Settings) (*Connection, error) {
	endpoints := slices.Compact(append([]string{cluster.Endpoint}, settings.Endpoints...))
	c := &Connection{
		cluster: cluster.Name, Settings: settings, endpoints: endpoints, clients: map[string]*client.Client{},
		sockets: map[string]string{},
	}
	for _, endpoint := range endpoints {
		if _, err := c.Client(endpoint); err != nil {
			return nil, err
		}
	}
	c.Learn(settings.Hosts)
	return c, nil
}

// Client returns the client of an endpoint, without connecting to it; "" is the one that docker would use.
func (c *Connection) Client(address string) (*client.Client, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if known, found := c.clients[address]; found {
		return known, nil
	}
	opened, err := openEndpoint(address, c.Settings, func(socket string) {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.sockets[address] = socket
	})
	if err != nil {
		return nil, err
	}
	c.clients[address] = opened
	return opened, nil
}

// SocketAt returns the socket path that was found on the host at an address, "" if it is in the address or the default.
func (c *Connection) SocketAt(address string) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.sockets[address]
}

// Learn adds the addresses of a cluster's hosts to the endpoints, managers first. If all hosts have one, docker's own
// default is no longer an endpoint. Errors in addresses are returned by host.
func (c *Connection) Learn(hosts map[string]domain.Host) map[string]error {
	invalid := map[string]error{}
	if len(hosts) == 0 {
		return invalid
	}
	all := true
	var learnt []string
	for _, role := range []domain.HostRole{domain.HostManager, "", domain.HostWorker} {
		for _, name := range slices.Sorted(maps.Keys(hosts)) {
			host := hosts[name]
			all = all && host.Address != ""
			if host.Role != role || host.Address == "" {
				continue
			}
			if _, err := c.Client(host.Address); err != nil {
				invalid[name] = err
				continue
			}
			learnt = append(learnt, host.Address)
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, address := range learnt {
		if !slices.Contains(c.endpoints, address) {
			c.endpoints = append(c.endpoints, address)
		}
	}
	c.all = nil
	if all && len(invalid) == 0 {
		c.all = learnt
		c.endpoints = slices.DeleteFunc(c.endpoints, func(endpoint string) bool { return endpoint == "" })
	}
	return invalid
}

// Manager returns the client of a reachable manager: the one that answered last, or another if that no longer does.
func (c *Connection) Manager(ctx context.Context) (Manager, error) {
	c.mu.Lock()
	managing := c.managing
	c.mu.Unlock()
	if managing != nil {
		err := Patiently(ctx, func(ctx context.Context) error {
			_, err := managing.Ping(ctx)
			return err
		})
		if err == nil {
			return managing, nil
		}
	}
	var found Manager
	err := c.Ask(ctx, func(m Manager) error {
		found = m
		return Patiently(ctx, func(ctx context.Context) error {
			_, err := m.SwarmInspect(ctx)
			return err
		})
	})
	return found, err
}

// patience is how long a manager may take to answer a read.
const patience = 20 * time.Second

// ErrSilent is returned if an Engine accepts a request and does not answer it.
var ErrSilent = fmt.Errorf("no answer within %s", patience)

// Patiently bounds a request to an Engine by patience.
func Patiently(ctx context.Context, ask func(context.Context) error) error {
	bounded, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	err := ask(bounded)
	if err != nil && bounded.Err() != nil && ctx.Err() == nil {
		return ErrSilent
	}
	return err
}

const (
	// electionPatience is how long requests are repeated while managers elect a leader. A round of their elections
	// takes 10 to 20 s, and fails if two managers stand at once, or one with an older log.
	electionPatience = time.Minute
	// electionRetry is the pause between those requests.
	electionRetry = time.Second
	// pingPatience bounds a ping of an Engine.
	pingPatience = 2 * time.Second
)

// Ask asks the managers in turn until one answers, and waits while they elect a leader. Writes have to be repeatable: a
// manager that is lost may have carried one out.
func (c *Connection) Ask(ctx context.Context, read func(m Manager) error) error {
	over := time.Now().Add(electionPatience)
	for {
		err := c.askEach(ctx, read)
		if !errors.Is(err, errLeaderless) || time.Now().After(over) {
			return err
		}
		select {
		case <-time.After(electionRetry):
		case <-ctx.Done():
			return err
		}
	}
}

// askEach asks the manager that answered last, then the others in order, until one answers.
func (c *Connection) askEach(ctx context.Context, read func(m Manager) error) error {
	var failures []error
	for _, endpoint := range c.order() {
		asked, err := c.Client(endpoint)
		if err != nil {
			return err
		}
		err = read(asked)
		if err == nil {
			c.mu.Lock()
			c.managing = asked
			c.mu.Unlock()
			return nil
		}
		if errors.Is(err, ErrSilent) && c.electing(ctx, asked) {
			err = fmt.Errorf("%w: %w", errLeaderless, err)
		}
		elsewhere, explained := Explain(endpointName(endpoint, asked), err)
		if !elsewhere || ctx.Err() != nil {
			return explained
		}
		failures = append(failures, explained)
	}
	failed := errors.Join(failures...)
	if !errors.Is(failed, engine.ErrUnreachable) && !errors.Is(failed, errLeaderless) && c.dissolved(ctx) {
		return errors.Join(failed, fmt.Errorf("the Swarm no longer exists: %w", engine.ErrNotFound))
	}
	return failed
}

// errLeaderless is returned while the managers elect a leader, or too few are left for that.
var errLeaderless = errors.New("the Swarm's managers have no leader")

// electing reports whether an Engine that does not answer a request may be waiting for a leader: it answers a ping, and
// there are other managers.
func (c *Connection) electing(ctx context.Context, asked Manager) bool {
	ctx, cancel := context.WithTimeout(ctx, pingPatience)
	defer cancel()
	_, err := asked.Ping(ctx)
	return err == nil && len(c.order()) > 1
}

// dissolved reports whether the Engines of all hosts of the cluster answer, and none is part of a Swarm. If some are
// not known, the Swarm may still exist without the one that was asked, so nothing is definite.
func (c *Connection) dissolved(ctx context.Context) bool {
	c.mu.Lock()
	all := c.all
	c.mu.Unlock()
	if len(all) == 0 {
		return false
	}
	for _, address := range slices.Concat(all, c.order()) {
		asked, err := c.Client(address)
		if err != nil {
			return false
		}
		info, err := asked.Info(ctx)
		if err != nil || info.Swarm.LocalNodeState != swarm.LocalNodeStateInactive {
			return false
		}
	}
	return true
}

// order returns the endpoints, that of the manager that answered last first.
func (c *Connection) order() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	order := slices.Clone(c.endpoints)
	slices.SortStableFunc(order, func(a, b string) int {
		return cmp.Compare(c.managed(b), c.managed(a))
	})
	return order
}

// Preferred returns the endpoint of the manager that answered last, or the first one.
func (c *Connection) Preferred() string { return c.order()[0] }

// managed is 1 for the endpoint of the manager that answered last.
func (c *Connection) managed(endpoint string) int {
	if c.managing != nil && c.clients[endpoint] == c.managing {
		return 1
	}
	return 0
}

// Explain adds the meaning of an Engine's error, and reports whether to ask another Engine: this one can't be reached,
// or is no manager.
func Explain(endpoint string, err error) (elsewhere bool, explained error) {
	switch {
	case leaderless(err):
		return true, fmt.Errorf("the Docker Engine at %s %w: %w: %w", endpoint, engine.ErrUnwell, errLeaderless, err)
	case client.IsErrConnectionFailed(err), errors.Is(err, ErrSilent):
		return true, fmt.Errorf("the Docker Engine at %s %w: %w", endpoint, engine.ErrUnreachable, err)
	case cerrdefs.IsUnavailable(err):
		return true, fmt.Errorf("the Docker Engine at %s: %w: %w", endpoint, ErrNoManager, err)
	case cerrdefs.IsInternal(err):
		return false, fmt.Errorf("the Docker Engine at %s %w: %w", endpoint, engine.ErrUnwell, err)
	}
	return false, fmt.Errorf("the Docker Engine at %s: %w", endpoint, err)
}

// ErrNoManager is returned by an Engine that does not manage a Swarm, or manages one without a leader.
var ErrNoManager = fmt.Errorf("%w: the Engine is not a Swarm manager; set the endpoint to that of a manager, or "+
	"declare the cluster's hosts with their addresses to have them form a Swarm", engine.ErrNotFormed)

// endpointName returns an endpoint's name for errors.
func endpointName(endpoint string, c *client.Client) string {
	if endpoint == "" {
		return c.DaemonHost()
	}
	return endpoint
}
