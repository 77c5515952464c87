package engine

import (
	"context"
	"time"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
)

// Call is a call to an engine.
type Call struct {
	// Name is the method's name, for a [Store] with the kind of the items: "Start", "Put group".
	Name string
	// Changes reports whether the call may change something.
	Changes bool
}

// Interceptor sees every call to an engine that does I/O. It decides whether to make the call, by do, and returns the
// error that the caller gets.
type Interceptor func(ctx context.Context, call Call, do func() error) error

// Intercept returns an engine whose calls go through an interceptor.
func Intercept(e Engine, interceptor Interceptor) Engine {
	return intercepted{e, interceptor}
}

type intercepted struct {
	// engine is not embedded, so that a method without interception does not compile.
	engine    Engine
	intercept Interceptor
}

// reads makes a call that changes nothing.
func reads[T any](ctx context.Context, i intercepted, name string, do func() (T, error)) (result T, err error) {
	err = i.intercept(ctx, Call{Name: name}, func() (err error) {
		result, err = do()
		return err
	})
	return result, err
}

// changes makes a call that may change something.
func changes[T any](ctx context.Context, i intercepted, name string, do func() (T, error)) (result T, err error) {
	err = i.intercept(ctx, Call{Name: name, Changes: true}, func() (err error) {
		result, err = do()
		return err
	})
	return result, err
}

// acts makes a call that may change something and returns only an error.
func (i intercepted) acts(ctx context.Context, name string, do func() error) error {
	return i.intercept(ctx, Call{Name: name, Changes: true}, do)
}

func (i intercepted) Traits() Traits { return i.engine.Traits() }

func (i intercepted) Snapshot() Engine { return Intercept(i.engine.Snapshot(), i.intercept) }

func (i intercepted) Get(ctx context.Context, key Key) (Item, error) {
	return reads(ctx, i, "Get "+key.Kind.Name, func() (Item, error) { return i.engine.Get(ctx, key) })
}

func (i intercepted) List(ctx context.Context, kind domain.Kind) ([]Item, error) {
	return reads(ctx, i, "List "+kind.Name, func() ([]Item, error) { return i.engine.List(ctx, kind) })
}

func (i intercepted) Put(ctx context.Context, item Item) (Item, error) {
	return changes(ctx, i, "Put "+item.Kind.Name, func() (Item, error) { return i.engine.Put(ctx, item) })
}

func (i intercepted) Delete(ctx context.Context, key Key) error {
	return i.acts(ctx, "Delete "+key.Kind.Name, func() error { return i.engine.Delete(ctx, key) })
}

func (i intercepted) Lock(ctx context.Context, name string, holder Holder) (func() error, error) {
	return changes(ctx, i, "Lock", func() (func() error, error) { return i.engine.Lock(ctx, name, holder) })
}

func (i intercepted) Hold(
	ctx context.Context, name string, holder Holder,
) (held context.Context, release func() error, err error) {
	err = i.acts(ctx, "Hold", func() (err error) {
		held, release, err = i.engine.Hold(ctx, name, holder)
		return err
	})
	return held, release, err
}

func (i intercepted) Recognise(ctx context.Context, id string) error {
	return i.intercept(ctx, Call{Name: "Recognise"}, func() error { return i.engine.Recognise(ctx, id) })
}

func (i intercepted) Complete(
	ctx context.Context, cluster domain.Cluster,
) (completed domain.Cluster, problems domain.Problems, err error) {
	err = i.intercept(ctx, Call{Name: "Complete"}, func() (err error) {
		completed, problems, err = i.engine.Complete(ctx, cluster)
		return err
	})
	return completed, problems, err
}

func (i intercepted) Form(ctx context.Context, cluster domain.Cluster) (domain.Cluster, error) {
	return changes(ctx, i, "Form", func() (domain.Cluster, error) { return i.engine.Form(ctx, cluster) })
}

func (i intercepted) Survey(ctx context.Context, cluster domain.Cluster) (domain.Cluster, error) {
	return reads(ctx, i, "Survey", func() (domain.Cluster, error) { return i.engine.Survey(ctx, cluster) })
}

func (i intercepted) Inventory(ctx context.Context, cluster domain.Cluster) (Inventory, error) {
	return reads(ctx, i, "Inventory", func() (Inventory, error) { return i.engine.Inventory(ctx, cluster) })
}

func (i intercepted) Preflight(ctx context.Context, specs []domain.MemberSpec) (domain.Problems, error) {
	return reads(ctx, i, "Preflight", func() (domain.Problems, error) { return i.engine.Preflight(ctx, specs) })
}

func (i intercepted) Dissolve(ctx context.Context) error {
	return i.acts(ctx, "Dissolve", func() error { return i.engine.Dissolve(ctx) })
}

func (i intercepted) Observe(ctx context.Context, group string) ([]domain.Observed, error) {
	return reads(ctx, i, "Observe", func() ([]domain.Observed, error) { return i.engine.Observe(ctx, group) })
}

func (i intercepted) Specified(ctx context.Context, group string) ([]domain.Observed, error) {
	return reads(ctx, i, "Specified", func() ([]domain.Observed, error) { return i.engine.Specified(ctx, group) })
}

func (i intercepted) Stage(ctx context.Context, specs []domain.MemberSpec) error {
	return i.acts(ctx, "Stage", func() error { return i.engine.Stage(ctx, specs) })
}

func (i intercepted) Start(ctx context.Context, group string, run int) error {
	return i.acts(ctx, "Start", func() error { return i.engine.Start(ctx, group, run) })
}

func (i intercepted) Stop(ctx context.Context, runs map[string]int, reason domain.StopReason) error {
	return i.acts(ctx, "Stop", func() error { return i.engine.Stop(ctx, runs, reason) })
}

func (i intercepted) Remove(ctx context.Context, names []string) error {
	return i.acts(ctx, "Remove", func() error { return i.engine.Remove(ctx, names) })
}

func (i intercepted) Prune(ctx context.Context, group string, spec *domain.Group) error {
	return i.acts(ctx, "Prune", func() error { return i.engine.Prune(ctx, group, spec) })
}

func (i intercepted) Watch(ctx context.Context) (<-chan struct{}, error) {
	return reads(ctx, i, "Watch", func() (<-chan struct{}, error) { return i.engine.Watch(ctx) })
}

func (i intercepted) Usage(ctx context.Context, window time.Duration) (Usage, error) {
	return reads(ctx, i, "Usage", func() (Usage, error) { return i.engine.Usage(ctx, window) })
}

func (i intercepted) GPUs(ctx context.Context) (map[string]domain.HostGPUs, error) {
	return reads(ctx, i, "GPUs", func() (map[string]domain.HostGPUs, error) { return i.engine.GPUs(ctx) })
}

func (i intercepted) Logs(ctx context.Context, member string, options LogOptions) ([]string, error) {
	return reads(ctx, i, "Logs", func() ([]string, error) { return i.engine.Logs(ctx, member, options) })
}

func (i intercepted) Follow(ctx context.Context, member string, from LogPlace) (LogPart, error) {
	return reads(ctx, i, "Follow", func() (LogPart, error) { return i.engine.Follow(ctx, member, from) })
}

func (i intercepted) StartController(ctx context.Context) error {
	return i.acts(ctx, "StartController", func() error { return i.engine.StartController(ctx) })
}

func (i intercepted) Residents(ctx context.Context) (domain.Residents, error) {
	return reads(ctx, i, "Residents", func() (domain.Residents, error) { return i.engine.Residents(ctx) })
}

func (i intercepted) StopController(ctx context.Context) error {
	return i.acts(ctx, "StopController", func() error { return i.engine.StopController(ctx) })
}

func (i intercepted) Guard(ctx context.Context) error {
	return i.acts(ctx, "Guard", func() error { return i.engine.Guard(ctx) })
}

func (i intercepted) JoinToken(ctx context.Context, role domain.HostRole) (JoinToken, error) {
	return reads(ctx, i, "JoinToken", func() (JoinToken, error) { return RequestJoinToken(ctx, i.engine, role) })
}

func (i intercepted) Pause(ctx context.Context, names []string) error {
	return i.acts(ctx, "Pause", func() error { return Pause(ctx, i.engine, names) })
}

func (i intercepted) Continue(ctx context.Context, names []string) error {
	return i.acts(ctx, "Continue", func() error { return Continue(ctx, i.engine, names) })
}

func (i intercepted) KeepRegistryLogins(ctx context.Context, group string, images []string) error {
	if _, keeps := i.engine.(RegistryLoginKeeper); !keeps {
		return nil
	}
	return i.acts(ctx, "KeepRegistryLogins", func() error { return KeepRegistryLogins(ctx, i.engine, group, images) })
}

func (i intercepted) MissingFolders(ctx context.Context, folders []domain.KeptFolder) ([]domain.KeptFolder, error) {
	return reads(ctx, i, "MissingFolders",
		func() ([]domain.KeptFolder, error) { return i.engine.MissingFolders(ctx, folders) })
}

func (i intercepted) ReadFolder(ctx context.Context, folder domain.KeptFolder, visit FolderVisitor) error {
	return i.intercept(ctx, Call{Name: "ReadFolder"}, func() error { return i.engine.ReadFolder(ctx, folder, visit) })
}

func (i intercepted) RemoveFolders(ctx context.Context, folders []domain.KeptFolder) error {
	return i.acts(ctx, "RemoveFolders", func() error { return i.engine.RemoveFolders(ctx, folders) })
}
