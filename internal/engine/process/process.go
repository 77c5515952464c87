//go:build linux

package process

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"path/filepath"
	"slices"

	"github.com/fsnotify/fsnotify"

	"github.com/trainyard/terraform-provider-trainyard/internal/agent/statedir"
	"github.com/trainyard/terraform-provider-trainyard/internal/agent/telemetry"
	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
)

// Engine runs one cluster.
type Engine struct {
	engine.Store
	dir     statedir.Dir
	program Program
	site    Site
	// gpus reads the GPUs of this machine.
	gpus func(ctx context.Context) (map[string]domain.HostGPUs, error)
	// foundFiles checks the files that were brought to this machine.
	foundFiles func(ctx context.Context) (map[string]engine.HostFiles, error)
	// states are read repeatedly, for up to a thousand members: only changed ones are read again.
	states *statedir.Remembered[statedir.State]
}

// Open returns the engine of a cluster; see [Driver].
func Open(ref domain.ClusterRef, settings engine.Settings, program Program) (*Engine, error) {
	cluster := ref.Name
	root, err := rootOf(ref.Endpoint, settings)
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
	return OpenAt(dir, program, Site{}), nil
}

// OpenAt returns the engine of the cluster in a state directory, on a machine that need not be Terraform's.
func OpenAt(dir statedir.Dir, program Program, site Site) *Engine {
	e := &Engine{
		Store: newStore(dir), dir: dir, program: program, site: site,
		states: statedir.Remember(dir, statedir.States, statedir.Read[statedir.State]),
	}
	e.gpus, e.foundFiles = e.readGPUs, e.findFiles
	return e
}

// clusters returns the names of the clusters in a state directory; see [engine.Driver].
func clusters(_ context.Context, endpoint string, settings engine.Settings) ([]string, error) {
	root, err := rootOf(endpoint, settings)
	if err != nil {
		return nil, err
	}
	names, err := statedir.Clusters(root)
	if err == nil && len(names) == 0 {
		return nil, fmt.Errorf("cluster %w in the state directory %s", engine.ErrNotFound, root)
	}
	return names, err
}

// rootOf returns the folder that holds the state directories of all clusters.
func rootOf(endpoint string, settings engine.Settings) (string, error) {
	if endpoint != "" {
		return filepath.Abs(endpoint)
	}
	root := settings.StateDir
	if root == "" {
		var err error
		if root, err = statedir.DefaultRoot(); err != nil {
			return "", fmt.Errorf(
				"no state directory: set state_dir in the provider's configuration or TRAINYARD_STATE_DIR: %w", err,
			)
		}
	}
	if !filepath.IsAbs(root) {
		return "", fmt.Errorf("the state directory %q is a relative path, which depends on the working directory: "+
			"use an absolute one, such as abspath(%q)", root, root)
	}
	return root, nil
}

// Traits returns the properties of this engine: members share the addresses of this machine.
func (e *Engine) Traits() engine.Traits {
	return engine.Traits{
		Name:      Name,
		Supports:  engine.Features{Pause: true},
		StateDir:  e.dir.Root,
		Restarts:  true,
		HandsOver: true,
		FilesDir:  e.dir.FilesDir, WorkDir: e.dir.WorkDir,
		FolderPlace: domain.KeptFolder.OnHost,
	}
}

// Snapshot returns the engine with GPUs and files read at most once. Documents are quick to read again.
func (e *Engine) Snapshot() engine.Engine {
	snapshot := *e
	snapshot.gpus, snapshot.foundFiles = engine.Once(e.readGPUs), engine.Once(e.findFiles)
	return &snapshot
}

// Recognise returns nil: this machine can't be another one.
func (e *Engine) Recognise(context.Context, string) error { return nil }

// Form returns the cluster as it is: this machine needs no changes.
func (e *Engine) Form(_ context.Context, cluster domain.Cluster) (domain.Cluster, error) {
	return cluster, nil
}

// Survey returns the cluster as stored: its hosts are all this machine, so they can't drift.
func (e *Engine) Survey(_ context.Context, cluster domain.Cluster) (domain.Cluster, error) {
	return cluster, nil
}

// localHost is the only host of a cluster that declares none.
const localHost = "local"

// Complete adds this machine as the only host of a cluster without hosts, and its capacity to hosts without one.
func (e *Engine) Complete(ctx context.Context, cluster domain.Cluster) (domain.Cluster, domain.Problems, error) {
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
				"the engine \"process\" runs members only on this machine, and %q is not one of its addresses; omit "+
					"the address, or use 127.0.0.1 to 127.255.255.254 or one of its own", host.Address)
		}
		hosts[name] = host
	}
	cluster.Hosts = hosts
	err = e.checkMetrics(ctx, &problems, cluster)
	return cluster, problems, err
}

// checkMetrics adds a problem if somebody else uses a port on which residents are to serve Prometheus.
func (e *Engine) checkMetrics(ctx context.Context, problems *domain.Problems, cluster domain.Cluster) error {
	if cluster.Agent.MetricsPort == 0 {
		return nil
	}
	stored, err := engine.Cluster(ctx, e)
	if err != nil && !errors.Is(err, engine.ErrNotFound) {
		return err
	}
	ports, err := telemetry.ListeningPorts()
	cluster.Agent.CheckMetricsPorts(problems, e.answering(cluster), ports, stored.Spec.Agent)
	return err
}

// isLocal reports whether a member can listen on the address.
func isLocal(address string) bool {
	listener, err := net.Listen("tcp", net.JoinHostPort(address, "0"))
	if err != nil {
		return false
	}
	return listener.Close() == nil
}

// Inventory returns the hosts as declared, with the ports in use on this machine.
func (e *Engine) Inventory(_ context.Context, cluster domain.Cluster) (engine.Inventory, error) {
	ports, err := telemetry.ListeningPorts()
	if err != nil {
		return engine.Inventory{}, err
	}
	ports = append(ports, cluster.Agent.MetricsPorts()...)
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

// Hold takes a lock, which nobody else can take as long as this process lives.
func (e *Engine) Hold(ctx context.Context, name string, holder engine.Holder) (context.Context, func() error, error) {
	return engine.HoldFor(ctx, e, name, holder)
}

// Dissolve ends everything that still runs, the supervisor last, and removes the state directory except for working
// directories that are not empty.
func (e *Engine) Dissolve(ctx context.Context) error {
	// The controller first: it might be about to restart a group, and would start members that were just removed.
	if err := e.StopController(ctx); err != nil {
		return err
	}
	if err := e.removeAll(ctx); err != nil {
		return err
	}
	if err := e.Delete(ctx, engine.Key{Kind: domain.ClusterKind}); err != nil {
		return err
	}
	err := e.dir.AwaitRelease(ctx, statedir.SupervisorLock)
	if err != nil && !errors.Is(err, engine.ErrNotFound) {
		return fmt.Errorf("the supervisor of cluster %q has not exited: %w", e.dir.Cluster, err)
	}
	return errors.Join(e.content().Clear(), e.dir.Remove())
}

// watched are the folders whose changes are reported.
var watched = []string{statedir.Documents, statedir.Specs, statedir.Staged, statedir.States}

// Watch reports changes in the folders that hold documents and states.
func (e *Engine) Watch(ctx context.Context) (<-chan struct{}, error) {
	watcher, err := fsnotify.NewWatcher()
	if err != nil {
		return nil, fmt.Errorf("watching the state directory: %w", err)
	}
	for _, folder := range watched {
		path := e.dir.Path(folder)
		err := statedir.MakeFolder(path)
		if err == nil {
			err = watcher.Add(path)
		}
		if err != nil {
			return nil, errors.Join(fmt.Errorf("watching the state directory: %w", err), watcher.Close())
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
			default: // a change is pending already
			}
		}
	}()
	return changes, nil
}
