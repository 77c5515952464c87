// Package process is the engine that runs members as processes of this machine. It needs nothing installed.
//
// It is two processes a cluster, both of this very program: the supervisor, which runs the members (package
// supervisor), and the controller, which the supervisor runs like a member. The engine talks to them through the files
// of a state directory (package statedir).
package process

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"os"
	"path/filepath"
	"slices"

	"github.com/fsnotify/fsnotify"

	"github.com/trainyard/terraform-provider-trainyard/internal/agent/statedir"
	"github.com/trainyard/terraform-provider-trainyard/internal/agent/telemetry"
	"github.com/trainyard/terraform-provider-trainyard/internal/bounded"
	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
)

// Name is the engine's name in a configuration.
const Name = "process"

// Engine runs one cluster.
type Engine struct {
	dir     statedir.Dir
	program Program
	// gpus reads the GPUs of this machine, and policies the documents of all policies.
	gpus     func(ctx context.Context) (map[string]domain.HostGPUs, error)
	policies func(ctx context.Context) (map[string]domain.AutoscalingPolicyDocument, error)
	// states and policyFiles are looked at again and again, of a thousand members and roles: only those that have changed are read.
	states      *statedir.Remembered[statedir.State]
	policyFiles *statedir.Remembered[domain.AutoscalingPolicyDocument]
}

// Program is what the supervisors and controllers of clusters are run from.
type Program struct {
	// File is the program's file; empty for that of the present process.
	File string
	// Version tells programs apart: residents of another version are replaced when a cluster is next changed. Members go on.
	Version string
}

// Opener returns the function that opens clusters whose residents are run from this program.
func Opener(program Program) engine.Open {
	return func(cluster domain.ClusterRef, settings engine.Settings) (engine.Engine, error) {
		return Open(cluster.Name, settings, program)
	}
}

// Open returns the engine of a cluster; see [Opener].
func Open(cluster string, settings engine.Settings, program Program) (*Engine, error) {
	root, err := rootOf(settings)
	if err != nil {
		return nil, err
	}
	var problems domain.Problems
	domain.CheckName(&problems, domain.Path{"name"}, "cluster", cluster)
	if err := problems.Err(); err != nil {
		return nil, err // the name becomes part of a path
	}
	dir, err := statedir.Open(root, cluster)
	if err != nil {
		return nil, err
	}
	e := &Engine{
		dir: dir, program: program,
		states: statedir.Remember[statedir.State](dir, statedir.States), policyFiles: statedir.Remember[domain.AutoscalingPolicyDocument](dir, statedir.Policies),
	}
	e.gpus, e.policies = e.readGPUs, e.readPolicies
	return e, nil
}

// Clusters returns the names of the clusters in the state directory; see [engine.List].
func Clusters(_ context.Context, settings engine.Settings) ([]string, error) {
	root, err := rootOf(settings)
	if err != nil {
		return nil, err
	}
	names, err := statedir.Clusters(root)
	if err == nil && len(names) == 0 {
		return nil, fmt.Errorf("a cluster was %w in the state directory %s", engine.ErrNotFound, root)
	}
	return names, err
}

// rootOf returns the folder that holds the state directories of all clusters.
func rootOf(settings engine.Settings) (string, error) {
	root := settings.StateDir
	if root == "" {
		var err error
		if root, err = statedir.DefaultRoot(); err != nil {
			return "", fmt.Errorf("no state directory: set state_dir in the provider's configuration or TRAINYARD_STATE_DIR: %w", err)
		}
	}
	if !filepath.IsAbs(root) {
		return "", fmt.Errorf("the state directory %q is a relative path, which would lead somewhere else from another folder: use an absolute one, such as abspath(%q)", root, root)
	}
	return root, nil
}

// Traits returns what is particular to this engine: members share the addresses of this machine.
func (e *Engine) Traits() engine.Traits {
	return engine.Traits{Name: Name, FilesDir: e.dir.FilesDir}
}

// Snapshot returns the engine with the GPUs read at most once, and the policies, each of which a plan looks for among all. Other files are quick to
// read again.
func (e *Engine) Snapshot() engine.Engine {
	snapshot := *e
	snapshot.gpus, snapshot.policies = engine.Once(e.readGPUs), engine.Once(e.readPolicies)
	return &snapshot
}

// Form returns the cluster as it is: there is nothing to be done to this machine.
func (e *Engine) Form(_ context.Context, cluster domain.Cluster) (domain.Cluster, error) {
	return cluster, nil
}

// Survey returns the cluster as it is stored: nobody can change hosts that are this machine.
func (e *Engine) Survey(_ context.Context, cluster domain.Cluster) (domain.Cluster, error) {
	return cluster, nil
}

// localHost is the one host of a cluster that declares none.
const localHost = "local"

// Complete gives a cluster without hosts this machine as its one host, and hosts without a capacity that of
// this machine.
func (e *Engine) Complete(_ context.Context, cluster domain.Cluster) (domain.Cluster, domain.Problems, error) {
	var problems domain.Problems
	cpus, memory, err := telemetry.Capacity()
	if err != nil {
		return cluster, nil, err
	}
	hosts := maps.Clone(cluster.Hosts)
	if len(hosts) == 0 {
		hosts = map[string]domain.Host{localHost: {}}
	}
	for _, name := range slices.Sorted(maps.Keys(hosts)) {
		host := hosts[name]
		if host.Address == "" {
			host.Address = "127.0.0.1"
		}
		if host.Capacity.CPUs == 0 {
			host.Capacity.CPUs = cpus
		}
		if host.Capacity.MemoryMiB == 0 {
			host.Capacity.MemoryMiB = memory
		}
		if !isLocal(host.Address) {
			problems.Add(domain.Path{"hosts", domain.Key(name), "address"}, "Not an address of this machine",
				"the engine \"process\" runs members on this machine alone, and %q is none of its addresses; leave the address out, or use 127.0.0.1 to 127.255.255.254 or one of its own", host.Address)
		}
		refuseSwarm(&problems, domain.Path{"hosts", domain.Key(name)}, []setting{
			{"role", string(host.Role)}, {"availability", string(host.Availability)}, {"advertise_address", host.AdvertiseAddress}, {"socket", host.Socket},
		})
		hosts[name] = host
	}
	refuseSwarm(&problems, domain.Path{}, []setting{{"endpoint", cluster.Endpoint}})
	refuseSwarm(&problems, domain.Path{"agent"}, []setting{{"image", cluster.Agent.Image}})
	if cluster.Network != nil {
		refuseSwarm(&problems, domain.Path{}, []setting{{"network", cmp.Or(cluster.Network.Subnet, "{}")}})
	}
	cluster.Hosts = hosts
	return cluster, problems, nil
}

// setting is an attribute with its value; empty where it is left out.
type setting struct{ attribute, value string }

// refuseSwarm adds a problem for each setting that means something to a Swarm only.
func refuseSwarm(problems *domain.Problems, at domain.Path, settings []setting) {
	for _, s := range settings {
		if s.value != "" {
			problems.Add(at.At(s.attribute), "Not for this engine",
				"the engine \"process\" runs members on this machine alone, and has no use for the %s %q; leave it out, or use the engine \"swarm\"", s.attribute, s.value)
		}
	}
}

// isLocal tells whether a member can listen on the address.
func isLocal(address string) bool {
	listener, err := net.Listen("tcp", net.JoinHostPort(address, "0"))
	if err != nil {
		return false
	}
	return listener.Close() == nil
}

// Inventory returns the hosts as declared, with the ports that are busy on this machine.
func (e *Engine) Inventory(_ context.Context, cluster domain.Cluster) (engine.Inventory, error) {
	ports, err := telemetry.ListeningPorts()
	if err != nil {
		return engine.Inventory{}, err
	}
	busy := map[string][]int{}
	for _, host := range cluster.Hosts {
		busy[host.Address] = ports
	}
	return engine.Inventory{Hosts: cluster.Hosts, BusyPorts: busy}, nil
}

// Lock takes a lock in the cluster's state directory.
func (e *Engine) Lock(_ context.Context, name string, holder engine.Holder) (func() error, error) {
	lock, err := e.dir.Lock(name, holder)
	if err != nil {
		return nil, err
	}
	return lock.Release, nil
}

// watched are the folders whose changes are reported.
var watched = []string{statedir.Groups, statedir.GPUPools, statedir.Policies, statedir.Specs, statedir.Staged, statedir.States}

// Watch reports changes in the folders that hold documents and states.
func (e *Engine) Watch(ctx context.Context) (<-chan struct{}, error) {
	watcher, err := fsnotify.NewWatcher()
	if err != nil {
		return nil, fmt.Errorf("the state directory can't be watched: %w", err)
	}
	for _, folder := range watched {
		path := e.dir.Path(folder)
		err := statedir.MakeFolder(path)
		if err == nil {
			err = watcher.Add(path)
		}
		if err != nil {
			return nil, errors.Join(fmt.Errorf("the state directory can't be watched: %w", err), watcher.Close())
		}
	}
	changes := make(chan struct{}, 1)
	go func() {
		defer close(changes)
		defer watcher.Close()
		for {
			select {
			case <-ctx.Done():
				return
			case <-watcher.Events:
			case err := <-watcher.Errors:
				if !errors.Is(err, fsnotify.ErrEventOverflow) {
					return
				}
			}
			select {
			case changes <- struct{}{}:
			default: // a change is waiting to be seen already
			}
		}
	}()
	return changes, nil
}

// Logs returns the end of a member's log.
func (e *Engine) Logs(_ context.Context, member string, options engine.LogOptions) ([]string, error) {
	_, err := os.Stat(e.dir.Document(statedir.Specs, member))
	if os.IsNotExist(err) {
		return nil, fmt.Errorf("member %q of cluster %q: %w", member, e.dir.Cluster, engine.ErrNotFound)
	}
	if err != nil {
		return nil, err
	}
	lines, err := e.dir.ReadLog(member, options)
	if _, tooMuch := errors.AsType[*bounded.Error](err); tooMuch {
		return nil, fmt.Errorf("the log of member %q has %w", member, err)
	}
	return lines, err
}
