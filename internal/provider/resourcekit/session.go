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

// DefaultEngine runs the clusters that name no engine.
const DefaultEngine = "process"

// Session is what all resources and data sources of one run of Terraform share. It keeps one engine for each way in
// which a cluster is referred to, with what that has connected to.
type Session struct {
	engines  engine.Registry
	Settings engine.Settings
	Plans    *Plans
	// Logins are how to log in to Prometheus servers, by their hosts.
	Logins map[string]prometheus.Credentials

	mu     sync.Mutex
	opened map[domain.ClusterRef]*opened
	// endpoints are where clusters are reached, and hosts are theirs with roles and addresses, as far as this run has
	// come across them.
	endpoints map[ClusterID][]string
	hosts     map[ClusterID]map[string]domain.Host
}

// opened is an engine that was opened.
type opened struct {
	live engine.Engine
	// endpoints and hosts are those with which it was opened, next to the endpoint of its reference.
	endpoints []string
	hosts     map[string]domain.Host
	// snapshot is what planning looks at; nil where none was taken since the last write.
	snapshot engine.Engine
}

// NewSession returns a session for these engines.
func NewSession(engines engine.Registry, settings engine.Settings) *Session {
	return &Session{
		engines: engines, Settings: settings, Plans: newPlans(), opened: map[domain.ClusterRef]*opened{},
		endpoints: map[ClusterID][]string{}, hosts: map[ClusterID]map[string]domain.Host{},
	}
}

// SessionOf takes the session out of what Configure of a resource or data source is given: nil as long as the
// provider is not configured.
func SessionOf(data any, diags *diag.Diagnostics) *Session {
	if data == nil {
		return nil
	}
	s, ok := data.(*Session)
	if !ok {
		diags.AddError("Unexpected provider data", fmt.Sprintf("The provider handed over a %T, not its session. This is a bug of the provider: please report it.", data))
	}
	return s
}

// Open returns the reconciler of a cluster as it is, for applies and data sources. It does not reach out to the engine.
func (s *Session) Open(cluster domain.ClusterRef) (reconcile.Reconciler, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	o, err := s.openLocked(cluster)
	if err != nil {
		return reconcile.Reconciler{}, err
	}
	return reconcilerOf(o.live), nil
}

// Plan returns the reconciler of a cluster as it was when this run first read it, or read it after its last write: for
// the refresh and the plan of its resources, which would read the same over and over again.
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

// openLocked opens an engine, unless it is open already with all that is known of the cluster.
func (s *Session) openLocked(cluster domain.ClusterRef) (*opened, error) {
	id := IDOf(cluster)
	endpoints := slices.DeleteFunc(slices.Clone(s.endpoints[id]), func(known string) bool { return known == cluster.Endpoint })
	if o := s.opened[cluster]; o != nil && slices.Equal(o.endpoints, endpoints) && reflect.DeepEqual(o.hosts, s.hosts[id]) {
		return o, nil
	}
	settings := s.Settings
	settings.Endpoints, settings.Hosts = endpoints, maps.Clone(s.hosts[id])
	settings.Log = slog.New(subsystem(engineLog))
	eng, err := s.engines.Open(cluster, settings)
	if err != nil {
		return nil, err
	}
	o := &opened{endpoints: endpoints, hosts: settings.Hosts, live: engine.Intercept(eng, func(ctx context.Context, call engine.Call, do func() error) error {
		if call.Changes {
			defer s.changed(id)
		}
		return trace(ctx, call, do)
	})}
	s.opened[cluster] = o
	return o, nil
}

// changed drops what was read of a cluster before a write.
func (s *Session) changed(id ClusterID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for ref, o := range s.opened {
		if IDOf(ref) == id {
			o.snapshot = nil
		}
	}
}

// Know remembers where a cluster is reached: any of its managers will do, should the one that is referred to not
// answer.
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

// Find returns the reference to a stored cluster of which only the name is known, and perhaps the address of a host.
// All engines are asked for it that have such addresses, where they are by default without one: one that can't be
// reached, or is not there at all, matters only where no other has the cluster.
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
			answers = append(answers, fmt.Errorf("engine %q: there is no such cluster", name))
		default:
			unsure = true
			answers = append(answers, fmt.Errorf("engine %q: %w", name, err))
		}
	}
	switch {
	case unsure:
		return domain.ClusterRef{}, fmt.Errorf("cluster %q was not found, and not every engine could tell:\n%w", cluster, errors.Join(answers...))
	case endpoint != "":
		return domain.ClusterRef{}, fmt.Errorf("cluster %q: %w at %s by any of the engines %q", cluster, engine.ErrNotFound, endpoint, asked)
	}
	return domain.ClusterRef{}, fmt.Errorf("cluster %q: %w by any of the engines %q, each asked where it looks by default: %s. Where that is elsewhere, begin the ID with the address of a host: ssh://ops@gpu1/%s",
		cluster, engine.ErrNotFound, asked, s.engines.Say(func(d engine.Driver) string { return d.Lookup }), cluster)
}

// PlannedCluster returns a cluster as this run has planned it, or else as it is stored. It is not settled where there
// is neither.
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
