package swarm

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

// connection reaches the Engines of a cluster, each at its endpoint, and keeps what it has opened.
type connection struct {
	cluster  string
	settings engine.Settings
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

// newConnection returns the connection to the Swarm of a cluster, without reaching out to it.
func newConnection(cluster domain.ClusterRef, settings engine.Settings) (*connection, error) {
	endpoints := slices.Compact(append([]string{cluster.Endpoint}, settings.Endpoints...))
	c := &connection{cluster: cluster.Name, settings: settings, endpoints: endpoints, clients: map[string]*client.Client{}, sockets: map[string]string{}}
	for _, endpoint := range endpoints {
		if _, err := c.client(endpoint); err != nil {
			return nil, err
		}
	}
	c.learn(settings.Hosts)
	return c, nil
}

// client returns the client of an endpoint, without reaching out to it; "" is where docker itself would look.
func (c *connection) client(address string) (*client.Client, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if known, found := c.clients[address]; found {
		return known, nil
	}
	opened, err := openEndpoint(address, c.settings, func(socket string) {
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

// socketAt returns the socket path that was found on the host at an address, "" if it is in the address or the default.
func (c *connection) socketAt(address string) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.sockets[address]
}

// learn makes the addresses of a cluster's hosts known as endpoints: after those known before, those of managers first. Where all hosts
// have one, docker's own default is none of them. What is wrong with addresses is returned by host.
func (c *connection) learn(hosts map[string]domain.Host) map[string]error {
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
			if _, err := c.client(host.Address); err != nil {
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

// manager returns the client of a manager that can be reached: the one that answered last, or another where it does no more.
func (c *connection) manager(ctx context.Context) (manager, error) {
	c.mu.Lock()
	managing := c.managing
	c.mu.Unlock()
	if managing != nil {
		err := patiently(ctx, func(ctx context.Context) error {
			_, err := managing.Ping(ctx)
			return err
		})
		if err == nil {
			return managing, nil
		}
	}
	var found manager
	err := c.ask(ctx, func(m manager) error {
		found = m
		return patiently(ctx, func(ctx context.Context) error {
			_, err := m.SwarmInspect(ctx)
			return err
		})
	})
	return found, err
}

// patience is how long a manager is waited for that is asked for what it knows.
const patience = 20 * time.Second

// errSilent is returned where an Engine takes a question, and does not answer it.
var errSilent = fmt.Errorf("it has not answered for %s", patience)

// patiently asks a question that an Engine has to answer within its time.
func patiently(ctx context.Context, ask func(context.Context) error) error {
	bounded, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	err := ask(bounded)
	if err != nil && bounded.Err() != nil && ctx.Err() == nil {
		return errSilent
	}
	return err
}

const (
	// electionPatience is how long managers are asked anew that are choosing a leader. A round of their elections takes 10 to 20 s, and ends
	// without one where two stand at once, or one that knows less than the others.
	electionPatience = time.Minute
	// electionRetry is how long they are left alone between.
	electionRetry = time.Second
	// pingPatience is how long an Engine may take to say that it is there.
	pingPatience = 2 * time.Second
)

// ask asks the managers until one answers, and waits for them while they choose a leader. What is written by it has to bear being written
// twice: a manager that is lost may have carried it out.
func (c *connection) ask(ctx context.Context, read func(m manager) error) error {
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
func (c *connection) askEach(ctx context.Context, read func(m manager) error) error {
	var failures []error
	for _, endpoint := range c.order() {
		asked, err := c.client(endpoint)
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
		if errors.Is(err, errSilent) && c.electing(ctx, asked) {
			err = fmt.Errorf("%w: %w", errLeaderless, err)
		}
		elsewhere, explained := explain(endpointName(endpoint, asked), err)
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

// electing tells whether an Engine that does not answer a question may be waiting for a leader: there are other managers, and it is well.
func (c *connection) electing(ctx context.Context, asked manager) bool {
	ctx, cancel := context.WithTimeout(ctx, pingPatience)
	defer cancel()
	_, err := asked.Ping(ctx)
	return err == nil && len(c.order()) > 1
}

// dissolved tells whether the Engines of all hosts of the cluster answer, and none is part of a Swarm. Where some are not known, the Swarm
// may go on without the one that was asked: nothing is definite then.
func (c *connection) dissolved(ctx context.Context) bool {
	c.mu.Lock()
	all := c.all
	c.mu.Unlock()
	if len(all) == 0 {
		return false
	}
	for _, address := range slices.Concat(all, c.order()) {
		asked, err := c.client(address)
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
func (c *connection) order() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	order := slices.Clone(c.endpoints)
	slices.SortStableFunc(order, func(a, b string) int {
		return cmp.Compare(c.managed(b), c.managed(a))
	})
	return order
}

// managed is 1 for the endpoint of the manager that answered last.
func (c *connection) managed(endpoint string) int {
	if c.managing != nil && c.clients[endpoint] == c.managing {
		return 1
	}
	return 0
}

// explain says what an Engine's answer means, and whether another Engine may know better: this one can't be reached, or is no manager.
func explain(endpoint string, err error) (elsewhere bool, explained error) {
	switch {
	case leaderless(err):
		return true, fmt.Errorf("the Docker Engine at %s %w: %w: %w", endpoint, engine.ErrUnwell, errLeaderless, err)
	case client.IsErrConnectionFailed(err), errors.Is(err, errSilent):
		return true, fmt.Errorf("the Docker Engine at %s %w: %w", endpoint, engine.ErrUnreachable, err)
	case cerrdefs.IsUnavailable(err):
		return true, fmt.Errorf("the Docker Engine at %s: %w: %w", endpoint, errNoManager, err)
	case cerrdefs.IsInternal(err):
		return false, fmt.Errorf("the Docker Engine at %s %w: %w", endpoint, engine.ErrUnwell, err)
	}
	return false, fmt.Errorf("the Docker Engine at %s: %w", endpoint, err)
}

// errNoManager is returned where an Engine does not manage a Swarm, or manages one that has no leader.
var errNoManager = fmt.Errorf("%w: it does not manage a Swarm; give the endpoint of a manager, or declare the cluster's hosts with their addresses to have them form one", engine.ErrNotFormed)

// endpointName names an endpoint in an error.
func endpointName(endpoint string, c *client.Client) string {
	if endpoint == "" {
		return c.DaemonHost()
	}
	return endpoint
}
