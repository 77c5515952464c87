// Package systemd is the engine that runs members as systemd units on hosts that are reached only over SSH.
package systemd

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/trainyard/terraform-provider-trainyard/internal/agent/filestore"
	"github.com/trainyard/terraform-provider-trainyard/internal/agent/statedir"
	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/systemd/layout"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/systemd/relay"
)

// Name is the engine's name in a configuration.
const Name = layout.Engine

// Engine runs one cluster.
type Engine struct {
	ref      domain.ClusterRef
	settings engine.Settings
	reach    *reach
	// place finds the store and the hosts of the cluster.
	place func(ctx context.Context) (place, error)
	// looks are the hosts of a snapshot for plans; nil for live hosts.
	looks *looks
	// Reports of agents and hosts, read once in a snapshot.
	observe   func(ctx context.Context, group string) ([]domain.Observed, error)
	gpus      func(ctx context.Context) (map[string]domain.HostGPUs, error)
	files     func(ctx context.Context) (map[string]engine.HostFiles, error)
	residents func(ctx context.Context) (domain.Residents, error)
	// staged are the hosts on which this process staged members that it has not started yet.
	staged *stagedHosts
	// seen are the facts about hosts as this process last read them, by name.
	seen *seenHosts
}

var (
	_ engine.Engine              = &Engine{}
	_ engine.FileStore           = &Engine{}
	_ engine.RegistryLoginKeeper = &Engine{}
	_ engine.Pauser              = &Engine{}
	_ engine.Promoter            = &Engine{}
	_ engine.Forgetter           = &Engine{}
)

// Driver returns the driver of this engine.
func Driver(program Program) engine.Driver {
	return engine.Driver{
		Endpoint: "ssh:// address of a host", Schemes: []string{"ssh"},
		Lookup: "nowhere: it needs the address of a host",
		Open: func(ref domain.ClusterRef, settings engine.Settings) (engine.Engine, error) {
			return Open(ref, settings, program)
		},
		Clusters: func(ctx context.Context, endpoint string, settings engine.Settings) ([]string, error) {
			return clusters(ctx, endpoint, settings, program)
		},
	}
}

// Open returns the engine of a cluster; see [Driver].
func Open(ref domain.ClusterRef, settings engine.Settings, program Program) (*Engine, error) {
	var problems domain.Problems
	domain.CheckName(&problems, domain.Path{"name"}, "cluster", ref.Name)
	if err := problems.Err(); err != nil {
		return nil, err // the name becomes part of a path
	}
	reach, err := newReach(ref.Name, settings, program)
	if err != nil {
		return nil, err
	}
	return (&Engine{ref: ref, settings: settings, reach: reach, staged: &stagedHosts{}, seen: &seenHosts{}}).now(), nil
}

// dir is the state directory of the cluster on each host.
func (e *Engine) dir() statedir.Dir { return statedir.Dir{Root: layout.Clusters, Cluster: e.ref.Name} }

// Traits returns the properties of this engine: members share the addresses of their hosts.
func (e *Engine) Traits() engine.Traits {
	return engine.Traits{
		Name:      Name,
		Restarts:  true,
		HandsOver: true,
		Supports: engine.Features{
			Endpoint: true, Roles: true, AdvertiseAddress: true, Pause: true, UnitSettings: true, Images: true,
		},
		ImportFrom: importFrom(e.ref.Endpoint),
		FilesDir:   e.dir().FilesDir, WorkDir: e.dir().WorkDir,
		FolderPlace: func(f domain.KeptFolder) string { return f.Host + ":" + f.OnHost() },
	}
}

// importFrom returns the prefix of import IDs for what is in a cluster with this endpoint.
func importFrom(endpoint string) string {
	if endpoint == "" {
		return ""
	}
	return strings.TrimSuffix(endpoint, "/") + "/"
}

// Snapshot returns the engine with hosts, members, GPUs, files and residents read at most once.
func (e *Engine) Snapshot() engine.Engine {
	snapshot := *e
	if e.settings.Planning {
		snapshot.looks = &looks{cluster: e.ref.Name, hosts: map[*host]*host{}}
	}
	snapshot.place = engine.Once(snapshot.find)
	all := engine.Once(func(ctx context.Context) ([]domain.Observed, error) { return snapshot.readMembers(ctx, "") })
	snapshot.observe = func(ctx context.Context, group string) ([]domain.Observed, error) {
		observed, err := all(ctx)
		return slices.DeleteFunc(slices.Clone(observed),
			func(o domain.Observed) bool { return group != "" && o.Group != group }), err
	}
	snapshot.gpus, snapshot.files = engine.Once(snapshot.readGPUs), engine.Once(snapshot.findFiles)
	snapshot.residents = engine.Once(snapshot.readResidents)
	return &snapshot
}

// now returns the engine without cached reads.
func (e *Engine) now() *Engine {
	now := *e
	now.looks = nil
	now.place, now.observe, now.gpus, now.files, now.residents = now.find, now.readMembers, now.readGPUs, now.findFiles,
		now.readResidents
	return &now
}

// named returns a host of the cluster.
func (e *Engine) named(name string, of domain.Host) (*host, error) {
	return e.looks.at(e.reach.named(name, of))
}

// FilesPath returns the folder of a version of files.
func (e *Engine) FilesPath(digest string) string {
	return filestore.Store{Dir: e.dir().Path(statedir.Content)}.Path(digest)
}

// Recognise returns an [engine.ElsewhereError] if the endpoint leads to another cluster of the same name.
func (e *Engine) Recognise(ctx context.Context, id string) error {
	document, err := engine.Cluster(ctx, e)
	if err != nil {
		return err
	}
	if document.Spec.ID != id {
		return &engine.ElsewhereError{
			Where: fmt.Sprintf("another cluster %q, created since", e.ref.Name), Expected: "the one in the state",
		}
	}
	return nil
}

// clusters returns the names of the clusters that a host is in.
func clusters(ctx context.Context, endpoint string, settings engine.Settings, program Program) ([]string, error) {
	if endpoint == "" {
		return nil, fmt.Errorf("cluster %w: the engine %q needs the address of a host, such as ssh://ops@gpu1",
			engine.ErrNotFound, Name)
	}
	reach, err := newReach("", settings, program)
	if err != nil {
		return nil, err
	}
	client, err := reach.client(endpoint)
	if err != nil {
		return nil, err
	}
	names, err := relay.Clusters.Ask(ctx, client.Client, "", none)
	if err == nil && len(names) == 0 || errors.Is(err, relay.ErrOutside) {
		return nil, fmt.Errorf("cluster %w on %s", engine.ErrNotFound, endpoint)
	}
	return names, err
}

// loginOf returns the SSH form of an address: "ssh://ops@gpu1:2222" is "ops@gpu1:2222".
func loginOf(address string) (string, error) {
	login, ok := strings.CutPrefix(address, "ssh://")
	if parsed, err := url.Parse(address); !ok || err != nil || strings.Trim(parsed.Path, "/") != "" {
		return "", fmt.Errorf("%q is not a valid host address: use ssh://[user@]host[:port]", address)
	}
	return strings.TrimSuffix(login, "/"), nil
}
