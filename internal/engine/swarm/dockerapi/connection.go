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

// Connection reaches the Engines of a cluster, each at its endpoint, and keeps what it has opened.
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
	// all are the addresses of all hosts of the cluster; nil where some are not known.
	all []string
	// sockets are the socket paths that were found on hosts, by address.
	sockets map[string]string
}

// New returns the connection to the Swarm of a cluster, without reaching out to it.
func New(cluster domain.ClusterRef, settings engine.Settings) (*Connection, error) {
	endpoints := slices.Compact(append([]string{cluster.Endpoint}, settings.Endpoints...))
	c := &Connection{cluster: cluster.Name, Settings: settings, endpoints: endpoints, clients: map[string]*client.Client{}, sockets: map[string]string{}}
	for _, endpoint := range endpoints {
		if _, err := c.Client(endpoint); err != nil {
			return nil, err
		}
	}
	c.Learn(settings.Hosts)
	return c, nil
}

// Client returns the client of an endpoint, without reaching out to it; "" is where docker itself would look.
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

// Learn makes the addresses of a cluster's hosts known as endpoints: after those known before, those of managers first.
// Where all hosts have one, docker's own default is none of them. What is wrong with addresses is returned by host.
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

// Manager returns the client of a manager that can be reached: the one that answered last, or another where it does no
// more.
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

// patience is how long a manager is waited for that is asked for what it knows.
const patience = 20 * time.Second

// ErrSilent is returned where an Engine takes a question, and does not answer it.
var ErrSilent = fmt.Errorf("it has not answered for %s", patience)

// Patiently asks a question that an Engine has to answer within its time.
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
	// electionPatience is how long managers are asked anew that are choosing a leader. A round of their elections takes
	// 10 to 20 s, and ends without one where two stand at once, or one that knows less than the others.
	electionPatience = time.Minute
	// electionRetry is how long they are left alone between.
	electionRetry = time.Second
	// pingPatience is how long an Engine may take to say that it is there.
	pingPatience = 2 * time.Second
)

// Ask asks the managers until one answers, and waits for them while they choose a leader. What is written by it has to
// bear being written twice: a manager that is lost may have carried it out.
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

// askEach asks the manager that answered last, else the others in order, until one answers.
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
		return errors.Join(failed, fmt.Errorf("no Swarm is left there: %w", engine.ErrNotFound))
	}
	return failed
}

// errLeaderless is returned where the managers are choosing a leader, or too few are left for one.
var errLeaderless = errors.New("the managers of the Swarm have no leader")

// electing reports whether an Engine that does not answer a question may be waiting for a leader: there are other
// managers, and it is well.
func (c *Connection) electing(ctx context.Context, asked Manager) bool {
	ctx, cancel := context.WithTimeout(ctx, pingPatience)
	defer cancel()
	_, err := asked.Ping(ctx)
	return err == nil && len(c.order()) > 1
}

// dissolved reports whether the Engines of all hosts of the cluster answer, and none is part of a Swarm. Where some are
// not known, the Swarm may go on without the one that was asked: nothing is definite then.
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

// Explain says what an Engine's answer means, and whether another Engine may know better: this one can't be reached, or
// is no manager.
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

// ErrNoManager is returned where an Engine does not manage a Swarm, or manages one that has no leader.
var ErrNoManager = fmt.Errorf("%w: it does not manage a Swarm; give the endpoint of a manager, or declare the cluster's hosts with their addresses to have them form one", engine.ErrNotFormed)

// endpointName names an endpoint in an error.
func endpointName(endpoint string, c *client.Client) string {
	if endpoint == "" {
		return c.DaemonHost()
	}
	return endpoint
}
