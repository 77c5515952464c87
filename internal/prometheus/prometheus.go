// Package prometheus reads the usage of a cluster's hosts, GPUs and members from a Prometheus that already scrapes
// other exporters on them (node_exporter, cAdvisor, dcgm-exporter).
//
// A query returns one series for each host, GPU or member, identified by its labels; [Quantities] lists the quantities
// that have queries.
package prometheus

import (
	"cmp"
	"context"
	"net/http"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/trainyard/terraform-provider-trainyard/internal/bounded"
	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
)

// The limits of windows for Prometheus, which keeps its own history.
const (
	ShortestWindow = time.Second
	LongestWindow  = 24 * time.Hour
)

// queriesAtOnce bounds the concurrent queries to a Prometheus.
const queriesAtOnce = 4

// Settings say which Prometheus to ask, and how.
type Settings struct {
	URL string
	Credentials
	// Timeout bounds all queries together.
	Timeout time.Duration
	// Queries override the built-in ones, by quantity.
	Queries map[string]string

	transport http.RoundTripper // nil for the default
}

// Cluster is the part of an [engine.Engine] that is used here.
type Cluster interface {
	engine.Store
	Observe(ctx context.Context, group string) ([]domain.Observed, error)
}

// Usage returns the usage of a cluster over a window that ends now.
func Usage(ctx context.Context, settings Settings, of Cluster, window time.Duration) (engine.Usage, error) {
	document, err := engine.Cluster(ctx, of)
	if err != nil {
		return engine.Usage{}, err
	}
	pools, err := engine.List[domain.GPUPoolDocument](ctx, of)
	if err != nil {
		return engine.Usage{}, err
	}
	observed, err := of.Observe(ctx, "")
	if err != nil {
		return engine.Usage{}, err
	}
	answers, err := settings.ask(ctx, document.Spec, window, time.Now())
	if err != nil {
		return engine.Usage{}, err
	}
	usage := engine.Usage{
		Hosts: map[string]engine.HostUsage{}, GPUs: map[string]engine.GPUUsage{},
		Members: map[string]engine.MemberUsage{},
	}
	for name := range document.Spec.Hosts {
		usage.Hosts[name] = answers.host(name)
	}
	for uuid, host := range answers.gpus(pools) {
		usage.GPUs[uuid] = answers.gpu(uuid, host)
	}
	for _, o := range observed {
		usage.Members[o.Name] = answers.member(o).Of(o)
	}
	return usage, nil
}

// ask queries all quantities as of now.
func (s Settings) ask(
	ctx context.Context, cluster domain.Cluster, window time.Duration, now time.Time,
) (answers, error) {
	c, err := newClient(s, bounded.Series)
	if err != nil {
		return answers{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, s.Timeout)
	defer cancel()
	step := stepOf(window)
	at := lastStep(now, step) // makes the last value part of the window
	const namesOfHosts = "host_names"
	names, err := c.ask(ctx, namesOfHosts, "node_uname_info", "node_uname_info", at)
	if err != nil {
		return answers{}, err
	}
	a := answers{
		hosts: newHosts(cluster.Hosts, names), queries: map[string]string{}, values: map[string]map[string]*value{},
		machines: map[string]string{},
	}
	var mu sync.Mutex
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(queriesAtOnce)
	for _, quantity := range Quantities() {
		query := strings.ReplaceAll(cmp.Or(s.Queries[quantity], Query(quantity)), clusterVariable, cluster.Name)
		if query == "" {
			continue
		}
		a.queries[quantity] = query
		wrapped := query
		if _, statistics := overWindow[quantity]; statistics {
			wrapped = statisticsOf(query, window, step)
		}
		group.Go(func() error {
			series, err := c.ask(ctx, quantity, query, wrapped, at)
			if err != nil {
				return err
			}
			mu.Lock()
			defer mu.Unlock()
			a.add(quantity, series)
			return nil
		})
	}
	return a, group.Wait()
}
