package engine

import (
	"context"
	"slices"
	"time"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
)

// Interceptor sees every call of an engine: it is given the call's name and the call itself, and returns what the
// caller gets as error. It need not make the call.
type Interceptor func(ctx context.Context, call string, do func() error) error

// reads are the calls that change nothing.
var reads = []string{
	"Complete", "Survey", "Inventory", "Preflight", "Residents", "Usage", "GPUs", "Cluster", "Group", "Groups", "GPUPools", "Policies", "Records", "Observe", "Specified", "Watch", "Logs", "JoinToken", "FindImage", "Recognise",
}

// Changes tells whether the call of a name, as an [Interceptor] sees it, may change something.
func Changes(call string) bool { return !slices.Contains(reads, call) }

// Intercept returns an engine whose calls go through an interceptor, but for those that do no I/O.
func Intercept(e Engine, interceptor Interceptor) Engine {
	return intercepted{e, interceptor}
}

type intercepted struct {
	Engine
	intercept Interceptor
}

// through makes a call with a result by way of the interceptor.
func through[T any](ctx context.Context, i intercepted, call string, do func() (T, error)) (result T, err error) {
	err = i.intercept(ctx, call, func() (err error) {
		result, err = do()
		return err
	})
	return result, err
}

func (i intercepted) Snapshot() Engine { return Intercept(i.Engine.Snapshot(), i.intercept) }

func (i intercepted) Form(ctx context.Context, cluster domain.Cluster) (domain.Cluster, error) {
	return through(ctx, i, "Form", func() (domain.Cluster, error) { return i.Engine.Form(ctx, cluster) })
}

func (i intercepted) Survey(ctx context.Context, cluster domain.Cluster) (domain.Cluster, error) {
	return through(ctx, i, "Survey", func() (domain.Cluster, error) { return i.Engine.Survey(ctx, cluster) })
}

func (i intercepted) JoinToken(ctx context.Context, role domain.HostRole) (JoinToken, error) {
	return through(ctx, i, "JoinToken", func() (JoinToken, error) { return RequestJoinToken(ctx, i.Engine, role) })
}

func (i intercepted) Specified(ctx context.Context, group string) ([]domain.Observed, error) {
	return through(ctx, i, "Specified", func() ([]domain.Observed, error) { return Specified(ctx, i.Engine, group) })
}

func (i intercepted) Recognise(ctx context.Context, id string) error {
	return i.intercept(ctx, "Recognise", func() error { return Recognise(ctx, i.Engine, id) })
}

func (i intercepted) Complete(ctx context.Context, cluster domain.Cluster) (completed domain.Cluster, problems domain.Problems, err error) {
	err = i.intercept(ctx, "Complete", func() (err error) {
		completed, problems, err = i.Engine.Complete(ctx, cluster)
		return err
	})
	return completed, problems, err
}

func (i intercepted) Inventory(ctx context.Context, cluster domain.Cluster) (Inventory, error) {
	return through(ctx, i, "Inventory", func() (Inventory, error) { return i.Engine.Inventory(ctx, cluster) })
}

func (i intercepted) Preflight(ctx context.Context, specs []domain.MemberSpec) (domain.Problems, error) {
	return through(ctx, i, "Preflight", func() (domain.Problems, error) { return i.Engine.Preflight(ctx, specs) })
}

func (i intercepted) Lock(ctx context.Context, name string, holder Holder) (func() error, error) {
	return through(ctx, i, "Lock", func() (func() error, error) { return i.Engine.Lock(ctx, name, holder) })
}

func (i intercepted) Hold(ctx context.Context, name string, holder Holder) (held context.Context, release func() error, err error) {
	err = i.intercept(ctx, "Hold", func() (err error) {
		held, release, err = Hold(ctx, i.Engine, name, holder)
		return err
	})
	return held, release, err
}

func (i intercepted) Usage(ctx context.Context, window time.Duration) (Usage, error) {
	return through(ctx, i, "Usage", func() (Usage, error) { return i.Engine.Usage(ctx, window) })
}

func (i intercepted) Cluster(ctx context.Context) (domain.ClusterDocument, error) {
	return through(ctx, i, "Cluster", func() (domain.ClusterDocument, error) { return i.Engine.Cluster(ctx) })
}

func (i intercepted) PutCluster(ctx context.Context, doc domain.ClusterDocument) (domain.ClusterDocument, error) {
	return through(ctx, i, "PutCluster", func() (domain.ClusterDocument, error) { return i.Engine.PutCluster(ctx, doc) })
}

func (i intercepted) DeleteCluster(ctx context.Context) error {
	return i.intercept(ctx, "DeleteCluster", func() error { return i.Engine.DeleteCluster(ctx) })
}

func (i intercepted) Group(ctx context.Context, name string) (domain.GroupDocument, error) {
	return through(ctx, i, "Group", func() (domain.GroupDocument, error) { return i.Engine.Group(ctx, name) })
}

func (i intercepted) Groups(ctx context.Context) (map[string]domain.GroupDocument, error) {
	return through(ctx, i, "Groups", func() (map[string]domain.GroupDocument, error) { return i.Engine.Groups(ctx) })
}

func (i intercepted) PutGroup(ctx context.Context, doc domain.GroupDocument) (domain.GroupDocument, error) {
	return through(ctx, i, "PutGroup", func() (domain.GroupDocument, error) { return i.Engine.PutGroup(ctx, doc) })
}

func (i intercepted) DeleteGroup(ctx context.Context, group string) error {
	return i.intercept(ctx, "DeleteGroup", func() error { return i.Engine.DeleteGroup(ctx, group) })
}

func (i intercepted) GPUPools(ctx context.Context) (map[string]domain.GPUPoolDocument, error) {
	return through(ctx, i, "GPUPools", func() (map[string]domain.GPUPoolDocument, error) { return i.Engine.GPUPools(ctx) })
}

func (i intercepted) PutGPUPool(ctx context.Context, doc domain.GPUPoolDocument) (domain.GPUPoolDocument, error) {
	return through(ctx, i, "PutGPUPool", func() (domain.GPUPoolDocument, error) { return i.Engine.PutGPUPool(ctx, doc) })
}

func (i intercepted) DeleteGPUPool(ctx context.Context, pool string) error {
	return i.intercept(ctx, "DeleteGPUPool", func() error { return i.Engine.DeleteGPUPool(ctx, pool) })
}

func (i intercepted) Policies(ctx context.Context) (map[string]domain.AutoscalingPolicyDocument, error) {
	return through(ctx, i, "Policies", func() (map[string]domain.AutoscalingPolicyDocument, error) { return i.Engine.Policies(ctx) })
}

func (i intercepted) PutPolicy(ctx context.Context, doc domain.AutoscalingPolicyDocument) (domain.AutoscalingPolicyDocument, error) {
	return through(ctx, i, "PutPolicy", func() (domain.AutoscalingPolicyDocument, error) { return i.Engine.PutPolicy(ctx, doc) })
}

func (i intercepted) DeletePolicy(ctx context.Context, key string) error {
	return i.intercept(ctx, "DeletePolicy", func() error { return i.Engine.DeletePolicy(ctx, key) })
}

func (i intercepted) Records(ctx context.Context, prefix string) (map[string]Record, error) {
	return through(ctx, i, "Records", func() (map[string]Record, error) { return i.Engine.Records(ctx, prefix) })
}

func (i intercepted) PutRecord(ctx context.Context, record Record) (Record, error) {
	return through(ctx, i, "PutRecord", func() (Record, error) { return i.Engine.PutRecord(ctx, record) })
}

func (i intercepted) DeleteRecord(ctx context.Context, name string) error {
	return i.intercept(ctx, "DeleteRecord", func() error { return i.Engine.DeleteRecord(ctx, name) })
}

func (i intercepted) GPUs(ctx context.Context) (map[string]domain.HostGPUs, error) {
	return through(ctx, i, "GPUs", func() (map[string]domain.HostGPUs, error) { return i.Engine.GPUs(ctx) })
}

func (i intercepted) Observe(ctx context.Context, group string) ([]domain.Observed, error) {
	return through(ctx, i, "Observe", func() ([]domain.Observed, error) { return i.Engine.Observe(ctx, group) })
}

func (i intercepted) Stage(ctx context.Context, specs []domain.MemberSpec) error {
	return i.intercept(ctx, "Stage", func() error { return i.Engine.Stage(ctx, specs) })
}

func (i intercepted) Start(ctx context.Context, group string, run int) error {
	return i.intercept(ctx, "Start", func() error { return i.Engine.Start(ctx, group, run) })
}

func (i intercepted) Stop(ctx context.Context, names []string, reason domain.StopReason) error {
	return i.intercept(ctx, "Stop", func() error { return i.Engine.Stop(ctx, names, reason) })
}

func (i intercepted) Remove(ctx context.Context, names []string) error {
	return i.intercept(ctx, "Remove", func() error { return i.Engine.Remove(ctx, names) })
}

func (i intercepted) Watch(ctx context.Context) (<-chan struct{}, error) {
	return through(ctx, i, "Watch", func() (<-chan struct{}, error) { return i.Engine.Watch(ctx) })
}

func (i intercepted) Logs(ctx context.Context, member string, options LogOptions) ([]string, error) {
	return through(ctx, i, "Logs", func() ([]string, error) { return i.Engine.Logs(ctx, member, options) })
}

func (i intercepted) StartController(ctx context.Context) error {
	return i.intercept(ctx, "StartController", func() error { return i.Engine.StartController(ctx) })
}

func (i intercepted) Residents(ctx context.Context) (domain.Residents, error) {
	return through(ctx, i, "Residents", func() (domain.Residents, error) { return i.Engine.Residents(ctx) })
}

func (i intercepted) StopController(ctx context.Context) error {
	return i.intercept(ctx, "StopController", func() error { return i.Engine.StopController(ctx) })
}
