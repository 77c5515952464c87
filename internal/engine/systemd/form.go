package systemd

import (
	"context"
	"crypto/rand"
	"errors"
	"maps"
	"net"
	"slices"
	"strconv"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/systemd/facts"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/systemd/relay"
	"github.com/trainyard/terraform-provider-trainyard/internal/sshclient"
)

// Complete examines all hosts in parallel, and fills in their capacities. What a host lacks is a problem with advice.
func (e *Engine) Complete(ctx context.Context, cluster domain.Cluster) (domain.Cluster, domain.Problems, error) {
	problems := e.check(cluster)
	if problems.Err() != nil {
		return cluster, problems, nil
	}
	found, failed := e.look(ctx, cluster.Hosts)
	if ctx.Err() != nil {
		return cluster, nil, context.Cause(ctx)
	}
	cluster.Hosts = maps.Clone(cluster.Hosts)
	for _, name := range slices.Sorted(maps.Keys(failed)) {
		e.excuse(ctx, &problems, cluster.Hosts, name, failed[name])
	}
	lacks, err := e.judge(found)
	if err != nil {
		return cluster, nil, err
	}
	problems = append(problems, lacks...)
	e.checkKeepsStore(ctx, &problems, cluster, found)
	e.checkOutside(ctx, &problems, cluster.Hosts)
	e.checkCrossings(ctx, &problems, cluster, found)
	e.checkMetrics(ctx, &problems, cluster, found)
	for name, f := range found {
		host := cluster.Hosts[name]
		if host.Capacity.CPUs == 0 {
			host.Capacity.CPUs = f.Capacity.CPUs
		}
		if host.Capacity.MemoryMiB == 0 {
			host.Capacity.MemoryMiB = f.Capacity.MemoryMiB
		}
		cluster.Hosts[name] = host
	}
	return cluster, problems, nil
}

// excuse adds the problem of an unreachable host. For a host of the cluster that is only away, it is a warning: the
// host keeps its stored capacity, so that changes on others can be planned.
func (e *Engine) excuse(
	ctx context.Context, problems *domain.Problems, hosts map[string]domain.Host, name string, err error,
) {
	const summary = "Host unreachable"
	at, host := domain.Path{"hosts", domain.Key(name), "address"}, hosts[name]
	p, _ := e.place(ctx) // without it, no host is excused
	known, joined := p.hosts[name]
	if errors.Is(err, engine.ErrRefused) || !joined || known.Address != host.Address {
		problems.Add(at, summary, "%v", err)
		return
	}
	problems.Warn(at, summary,
		"%v. The plan uses its last known state; an apply that changes the cluster fails until it is back", err)
	if host.Capacity.CPUs == 0 {
		host.Capacity.CPUs = known.Capacity.CPUs
	}
	if host.Capacity.MemoryMiB == 0 {
		host.Capacity.MemoryMiB = known.Capacity.MemoryMiB
	}
	hosts[name] = host
}

// check returns the problems of a cluster that don't depend on the state of its hosts.
func (e *Engine) check(cluster domain.Cluster) domain.Problems {
	var problems domain.Problems
	if len(cluster.Hosts) == 0 {
		problems.Add(domain.Path{"hosts"}, "No hosts", "the engine %q needs hosts that it can log in to: hosts = { "+
			"gpu1 = { address = \"ssh://ops@gpu1\", role = \"manager\" } }", Name)
		return problems
	}
	var managers []string
	for _, name := range cluster.HostNames() {
		host, at := cluster.Hosts[name], domain.Path{"hosts", domain.Key(name)}
		if host.Address == "" {
			problems.Add(at.At("address"), "Missing address",
				"the engine %q logs in to host %q: give its address, such as \"ssh://ops@%s\"", Name, name, name)
		} else if login, err := loginOf(host.Address); err != nil {
			problems.Add(at.At("address"), "Invalid address", "%v", err)
		} else if _, err := sshclient.ParseHost(login); err != nil {
			problems.Add(at.At("address"), "Invalid address", "%v", err)
		}
		if host.Role == domain.HostManager {
			managers = append(managers, name)
		}
	}
	if len(managers) != 1 {
		problems.Add(domain.Path{"hosts"}, "No single store host", "one host stores the cluster's documents and runs "+
			"its controller: set role = \"manager\" on one host, not on %d: %q", len(managers), managers)
	}
	return problems
}

// judge returns what hosts lack, and remembers their facts.
func (e *Engine) judge(found map[string]facts.Facts) (domain.Problems, error) {
	e.seen.set(found)
	problems := facts.CheckAll(found, e.reach.program.residents().Architectures())
	more, err := e.reach.program.check(found)
	return append(problems, more...), err
}

// look returns the facts about hosts.
func (e *Engine) look(ctx context.Context, hosts map[string]domain.Host) (map[string]facts.Facts, map[string]error) {
	return onAll(hosts, func(name string) (facts.Facts, error) {
		h, err := e.reach.client(hosts[name].Address)
		if err != nil {
			return facts.Facts{}, err
		}
		return facts.Read(ctx, h.ssh)
	})
}

// Form installs the programs on the hosts, and makes them part of the cluster. Machines that are no longer in it are
// cleaned of everything of ours.
func (e *Engine) Form(ctx context.Context, cluster domain.Cluster) (domain.Cluster, error) {
	found, failed := e.look(ctx, cluster.Hosts)
	if err := joined(failed); err != nil {
		return cluster, err
	}
	lacks, err := e.judge(found)
	if err == nil {
		err = lacks.Err()
	}
	if err != nil {
		return cluster, err
	}
	_, failed = onAll(cluster.Hosts, func(name string) (relay.None, error) {
		h, err := e.reach.client(cluster.Hosts[name].Address)
		if err != nil {
			return none, err
		}
		if err := e.reach.program.install(ctx, h.ssh, found[name]); err != nil {
			return none, err
		}
		h.Forget()
		return none, nil
	})
	if err := joined(failed); err != nil {
		return cluster, err
	}

	before, err := e.now().find(ctx)
	if err != nil && !errors.Is(err, engine.ErrNotFound) {
		return cluster, err
	}
	if err := e.keepsStore(ctx, before, cluster); err != nil {
		return cluster, err
	}
	if before.lost != nil { // it has another address
		if before, err = e.now().find(ctx); err != nil {
			return cluster, err
		}
	}
	if err := e.dismiss(ctx, before, cluster, found); err != nil {
		return cluster, err
	}
	manager := managerOf(cluster)
	ledger := before.ledger
	if ledger.Store == "" {
		ledger.Store, ledger.Epoch = manager, 1
	}
	credentials, err := e.join(ctx, cluster, ledger)
	if err == nil {
		err = e.welcome(ctx, credentials)
	}
	if err != nil {
		return cluster, err
	}
	if before.store != nil && ledger.Store != manager {
		if err := e.moveStore(ctx, before, manager, cluster.Hosts); err != nil {
			return cluster, err
		}
	}

	cluster.Hosts = maps.Clone(cluster.Hosts)
	for name, theirs := range credentials {
		host := cluster.Hosts[name]
		host.ID, host.Joined = theirs.Machine, true
		cluster.Hosts[name] = host
	}
	if cluster.ID == "" {
		if cluster.ID, err = e.idOf(ctx, before); err != nil {
			return cluster, err
		}
	}
	return cluster, nil
}

// managerOf returns the host that is to have the store.
func managerOf(cluster domain.Cluster) string {
	for _, name := range cluster.HostNames() {
		if cluster.Hosts[name].Role == domain.HostManager {
			return name
		}
	}
	return ""
}

// join makes hosts part of the cluster, and introduces them to each other. The store host comes first, as it has the
// cluster's key.
func (e *Engine) join(
	ctx context.Context, cluster domain.Cluster, ledger relay.Ledger,
) (map[string]relay.Credentials, error) {
	hosts := place{hosts: cluster.Hosts}
	join := func(name, key string) (relay.Credentials, error) {
		m := relay.Membership{Ledger: relay.Ledger{Host: name, Store: ledger.Store, Epoch: ledger.Epoch}, Key: key}
		return askHost(ctx, e, hosts, name, relay.Join, m)
	}
	own, err := join(ledger.Store, "")
	if err != nil {
		return nil, ofHost(ledger.Store, err)
	}
	others := maps.Clone(cluster.Hosts)
	delete(others, ledger.Store)
	credentials, failed := onAll(others, func(name string) (relay.Credentials, error) { return join(name, own.Key) })
	if err := joined(failed); err != nil {
		return nil, err
	}
	credentials[ledger.Store] = own
	peers := map[string]relay.Peer{}
	for name, theirs := range credentials {
		peers[name] = relay.Peer{Login: e.loginFor(cluster.Hosts[name]), HostKeys: theirs.HostKeys}
	}
	_, failed = onAll(cluster.Hosts, func(name string) (relay.None, error) {
		return askHost(ctx, e, hosts, name, relay.Introduce, relay.Introduction{Self: name, Peers: peers})
	})
	return credentials, joined(failed)
}

// idOf returns the ID of the existing cluster, or a new one.
func (e *Engine) idOf(ctx context.Context, p place) (string, error) {
	if p.store == nil {
		return rand.Text(), nil
	}
	document, err := engine.Cluster(ctx, copyOf{p.store, e.ref.Name})
	if errors.Is(err, engine.ErrNotFound) || err == nil && document.Spec.ID == "" {
		return rand.Text(), nil
	}
	return document.Spec.ID, err
}

// loginFor is how the controller logs in to a host: as this user, at the address by which the other hosts reach it.
func (e *Engine) loginFor(host domain.Host) string {
	login, _ := loginOf(host.Address) // it was checked
	at, _ := sshclient.ParseHost(login)
	name, port := host.MemberAddress(), at.Port
	if _, given, err := net.SplitHostPort(host.AdvertiseAddress); err == nil {
		if number, err := strconv.ParseUint(given, 10, 16); err == nil {
			port = uint16(number)
		}
	}
	who := at.User
	if who == "" {
		who, _ = sshclient.LoginUser(e.settings.SSH) // it was used
	}
	return who + "@" + net.JoinHostPort(name, strconv.Itoa(int(port)))
}
