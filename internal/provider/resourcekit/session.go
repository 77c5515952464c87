package resourcekit

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"

	"github.com/hashicorp/terraform-plugin-framework/diag"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
	"github.com/trainyard/terraform-provider-trainyard/internal/prometheus"
	"github.com/trainyard/terraform-provider-trainyard/internal/reconcile"
)

// DefaultEngine is the engine of clusters that name none.
const DefaultEngine = "process"

// Session is shared by all resources and data sources of one run of Terraform. It keeps one engine with its connections
// for each reference to a cluster.
type Session struct {
	engines  engine.Registry
	Settings engine.Settings
	Plans    *Plans
	// Logins are the credentials for Prometheus servers, by host.
	Logins map[string]prometheus.Credentials

	mu     sync.Mutex
	opened map[domain.ClusterRef]*opened
	// endpoints and hosts are the known endpoints of clusters, and their hosts with roles and addresses.
	endpoints map[ClusterID][]string
	hosts     map[ClusterID]map[string]domain.Host
}

// opened is an opened engine.
type opened struct {
	live engine.Engine
	// endpoints and hosts are those with which it was opened, besides the endpoint of its reference.
	endpoints []string
	hosts     map[string]domain.Host
	// snapshot is what plans use; nil if none was taken since the last write.
	snapshot engine.Engine
}

// NewSession returns a session for these engines.
func NewSession(engines engine.Registry, settings engine.Settings) *Session {
	return &Session{
		engines: engines, Settings: settings, Plans: newPlans(), opened: map[domain.ClusterRef]*opened{},
		endpoints: map[ClusterID][]string{}, hosts: map[ClusterID]map[string]domain.Host{},
	}
}

// SessionOf returns the session from the data that Configure gets: nil until the provider is configured.
func SessionOf(data any, diags *diag.Diagnostics) *Session {
	if data == nil {
		return nil
	}
	s, ok := data.(*Session)
	if !ok {
		diags.AddError("Unexpected provider data",
			fmt.Sprintf("Expected the session of the provider, got %T. This is a bug in the provider: "+
				"please report it.",
				data))
	}
	return s
}

// Open returns the reconciler of a cluster as it is, for applies and data sources. It makes no engine call.
func (s *Session) Open(cluster domain.ClusterRef) (reconcile.Reconciler, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	o, err := s.openLocked(cluster)
	if err != nil {
		return reconcile.Reconciler{}, err
	}
	return reconcilerOf(o.live), nil
}

// Plan returns the reconciler of a cluster as of this run's first read, or the first read after its last write. Refresh
// and plan of its resources would otherwise read the same again and again.
func (s *Session) Plan(cluster domain.ClusterRef) (reconcile.Reconciler, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	o, err := s.openLocked(cluster)
	if err != nil {
		return reconcile.Reconciler{}, err
	}
	if o.snapshot == nil {
		o.snapshot = engine.ReadingOnce(o.live.Snapshot())
	}
	return reconcilerOf(o.snapshot), nil
}

func reconcilerOf(e engine.Engine) reconcile.Reconciler {
	return reconcile.Reconciler{Engine: e, Logger: slog.New(subsystem(reconcileLog))}
}

// openLocked opens an engine, unless it is open already with everything known of the cluster.
func (s *Session) openLocked(cluster domain.ClusterRef) (*opened, error) {
	id := IDOf(cluster)
	endpoints := slices.DeleteFunc(slices.Clone(s.endpoints[id]),
		func(known string) bool { return known == cluster.Endpoint })
	if o := s.opened[cluster]; o != nil && slices.Equal(o.endpoints, endpoints) &&
		reflect.DeepEqual(o.hosts, s.hosts[id]) {
		return o, nil
	}
	settings := s.Settings
	settings.Endpoints, settings.Hosts = endpoints, maps.Clone(s.hosts[id])
	settings.Log = slog.New(subsystem(engineLog))
	eng, err := s.engines.Open(cluster, settings)
	if err != nil {
		return nil, err
	}
	o := &opened{endpoints: endpoints, hosts: settings.Hosts,
		live: engine.Intercept(eng, func(ctx context.Context, call engine.Call, do func() error) error {
			if call.Changes {
				defer s.changed(id)
			}
			return trace(ctx, call, do)
		})}
	s.opened[cluster] = o
	return o, nil
}

// changed drops the snapshots of a cluster from before a write.
func (s *Session) changed(id ClusterID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for ref, o := range s.opened {
		if IDOf(ref) == id {
			o.snapshot = nil
		}
	}
}

// Know records where a cluster is reached: if the endpoint in use does not answer, any other manager will do.
func (s *Session) Know(cluster domain.Cluster) {
	s.mu.Lock()
	defer s.mu.Unlock()
	id := IDOf(cluster.Ref())
	if endpoint := cluster.Endpoint; endpoint != "" && !slices.Contains(s.endpoints[id], endpoint) {
		s.endpoints[id] = append(s.endpoints[id], endpoint)
	}
	for name, host := range cluster.Hosts {
		if s.hosts[id] == nil {
			s.hosts[id] = map[string]domain.Host{}
		}
		s.hosts[id][name] = domain.Host{Role: host.Role, Address: host.Address}
	}
}

// Find returns the reference to a stored cluster with this name, optionally at the address of a host. It asks all
// engines that take such an address, or without one all engines at their default locations. An engine that can't be
// reached matters only if no other one has the cluster.
func (s *Session) Find(ctx context.Context, endpoint, cluster string) (domain.ClusterRef, error) {
	var answers []error
	var asked []string
	unsure := false
	scheme, _, _ := strings.Cut(endpoint, "://")
	for _, name := range s.engines.Names() {
		if endpoint != "" && !slices.Contains(s.engines[name].Schemes, scheme) {
			continue
		}
		asked = append(asked, name)
		ref := domain.ClusterRef{Engine: name, Name: cluster, Endpoint: endpoint}
		document, err := s.Document(ctx, ref)
		switch {
		case err == nil:
			s.Know(document.Spec)
			ref.Endpoint = cmp.Or(document.Spec.Endpoint, endpoint)
			return ref, nil
		case errors.Is(err, engine.ErrNotFound):
			answers = append(answers, fmt.Errorf("engine %q: no such cluster", name))
		default:
			unsure = true
			answers = append(answers, fmt.Errorf("engine %q: %w", name, err))
		}
	}
	switch {
	case unsure:
		return domain.ClusterRef{}, fmt.Errorf("cluster %q was not found, and not every engine could be asked:\n%w",
			cluster, errors.Join(answers...))
	case endpoint != "":
		return domain.ClusterRef{}, fmt.Errorf("cluster %q: %w at %s by any of the engines %q", cluster,
			engine.ErrNotFound, endpoint, asked)
	}
	return domain.ClusterRef{}, fmt.Errorf("cluster %q: %w by any of the engines %q, each asked where it looks by "+
		"default: %s. If the cluster is elsewhere, start the ID with the address of a host: ssh://ops@gpu1/%s",
		cluster, engine.ErrNotFound, asked, s.engines.Say(func(d engine.Driver) string { return d.Lookup }), cluster)
}

// PlannedCluster returns a cluster as planned in this run, or else as stored. It is not settled if it is neither.
func (s *Session) PlannedCluster(ctx context.Context, cluster domain.ClusterRef) (PlannedCluster, error) {
	if planned, found := s.Plans.Cluster(IDOf(cluster)); found {
		return planned, nil
	}
	reconciler, err := s.Plan(cluster)
	if err != nil {
		return PlannedCluster{}, err
	}
	document, err := engine.Cluster(ctx, reconciler.Engine)
	if err != nil && !errors.Is(err, engine.ErrNotFound) {
		return PlannedCluster{}, err
	}
	return PlannedCluster{Spec: document.Spec, Settled: err == nil}, nil
}

// Document returns the stored document of a cluster.
func (s *Session) Document(ctx context.Context, cluster domain.ClusterRef) (domain.ClusterDocument, error) {
	reconciler, err := s.Open(cluster)
	if err != nil {
		return domain.ClusterDocument{}, err
	}
	return engine.Cluster(ctx, reconciler.Engine)
}
