//go:build linux

package process

import (
	"context"
	"errors"
	"maps"
	"os"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/trainyard/terraform-provider-trainyard/internal/agent/statedir"
	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
)

// Observe returns the members of a group, or of all groups, from their states. If a state is not about the current
// specification yet, the member is described by the specification.
func (e *Engine) Observe(ctx context.Context, group string) (observed []domain.Observed, err error) {
	// A destroy must not miss a member that is being started.
	for range looks {
		var whole bool
		if observed, whole, err = e.look(ctx, group); err != nil || whole {
			return observed, err
		}
	}
	return observed, nil
}

// Specified returns the members as Observe does.
func (e *Engine) Specified(ctx context.Context, group string) ([]domain.Observed, error) {
	return e.Observe(ctx, group)
}

// Prune removes old values of secrets. A member's files are removed with the member.
func (e *Engine) Prune(_ context.Context, group string, _ *domain.Group) error {
	return e.dir.PruneSecrets(group)
}

// looks bounds how often members are listed again because some of them moved meanwhile.
const looks = 100

// look returns the members as Observe does, and whether the list is complete.
func (e *Engine) look(ctx context.Context, group string) (observed []domain.Observed, whole bool, err error) {
	starts, err := e.starts()
	if err != nil {
		return nil, false, err
	}
	// Listed in the order in which a member moves through the folders, so that it is not missed on the way.
	staged, err := e.dir.Names(statedir.Staged)
	if err != nil {
		return nil, false, err
	}
	mayBe := func(name string) bool { return group == "" || statedir.MayBeOf(name, group) }
	specs, err := e.dir.ListOf(statedir.Specs, mayBe)
	if err != nil {
		return nil, false, err
	}
	states, err := e.states.ListOf(mayBe)
	if err != nil {
		return nil, false, err
	}
	if len(specs)+len(states) > 0 {
		if err := e.supervise(ctx); err != nil {
			return nil, false, err
		}
	}
	all := maps.Clone(staged)
	for _, listed := range []map[string]statedir.Stamp{specs, states} {
		for name := range listed {
			all[name] = true
		}
	}
	delete(all, controllerMember)
	delete(all, agentMember)
	names := slices.DeleteFunc(slices.Sorted(maps.Keys(all)), func(name string) bool { return !mayBe(name) })
	observed, err = sideBySide(names, func(name string) (domain.Observed, error) {
		o, starting, err := e.observeStarting(starts, staged, name)
		if err == nil && !starting {
			stamp, inForce := specs[name]
			o, err = e.observe(name, states[name], stamp, inForce)
		}
		if err == nil {
			o.Instance, err = e.instance(name, states[name])
		}
		if errors.Is(err, engine.ErrNotFound) {
			return domain.Observed{}, nil
		}
		return o, err
	})
	// It was forgotten after it was listed, or is moving between folders: listing again shows which.
	whole = !slices.ContainsFunc(observed, func(o domain.Observed) bool { return o.Name == "" })
	return slices.DeleteFunc(observed, func(o domain.Observed) bool {
		return o.Name == "" || group != "" && o.Group != group
	}), whole, err
}

// sideBySide returns what observe returns for each name, in order, or the first error. It splits the names among the
// processors.
func sideBySide(names []string, observe func(name string) (domain.Observed, error)) ([]domain.Observed, error) {
	observed, errs := make([]domain.Observed, len(names)), make([]error, len(names))
	share := (len(names) + runtime.GOMAXPROCS(0) - 1) / runtime.GOMAXPROCS(0)
	var observers sync.WaitGroup
	for first := 0; first < len(names); first += share {
		observers.Go(func() {
			for i := first; i < min(first+share, len(names)); i++ {
				observed[i], errs[i] = observe(names[i])
			}
		})
	}
	observers.Wait()
	for _, err := range errs {
		if err != nil {
			return nil, err
		}
	}
	return observed, nil
}

// starts returns the pending start requests.
func (e *Engine) starts() ([]statedir.Start, error) {
	for {
		names, err := e.dir.Names(statedir.Starts)
		if err != nil {
			return nil, err
		}
		starts := make([]statedir.Start, 0, len(names))
		gone := false
		for name := range names {
			start, err := statedir.Read[statedir.Start](e.dir.Document(statedir.Starts, name))
			if gone = errors.Is(err, engine.ErrNotFound); gone {
				break
			}
			if err != nil {
				return nil, err
			}
			starts = append(starts, start)
		}
		if !gone {
			return starts, nil
		}
		// It has been handled, or claimed, which renames it.
	}
}

// observeStarting returns a member whose staged specification is about to take effect: it is pending under that one,
// whatever it still runs as.
func (e *Engine) observeStarting(
	starts []statedir.Start, staged map[string]bool, name string,
) (domain.Observed, bool, error) {
	if !staged[name] || len(starts) == 0 {
		return domain.Observed{}, false, nil
	}
	// If it is not found, it has taken effect by now, and the earlier listing is out of date.
	spec, err := statedir.Read[domain.MemberSpec](e.dir.Document(statedir.Staged, name))
	if err != nil || !slices.ContainsFunc(starts, func(s statedir.Start) bool { return s.Starts(spec) }) {
		return domain.Observed{}, false, err
	}
	o := pending(spec)
	o.Hash, o.Run = spec.Hash, spec.Run
	return o, true, nil
}

// pending returns a member that is not started yet.
func pending(spec domain.MemberSpec) domain.Observed {
	return domain.Observed{
		Name: spec.Name, Group: spec.Group, Role: spec.Role, Index: spec.Index, Host: spec.Host, Address: spec.Address,
		State: domain.StatePending,
	}
}

// observe returns a member from its state, its current specification or its staged one, whichever is the most recent.
// listed and stamp identify the listed files of the state and the specification.
func (e *Engine) observe(name string, listed, stamp statedir.Stamp, inForce bool) (domain.Observed, error) {
	state, err := e.states.Read(name, listed)
	if err != nil && !errors.Is(err, engine.ErrNotFound) {
		return domain.Observed{}, err
	}
	known := err == nil
	if known && (!inForce || state.Spec == stamp) {
		return state.Observed(), nil
	}
	folder := statedir.Staged
	if inForce {
		folder = statedir.Specs
	}
	spec, err := statedir.Read[domain.MemberSpec](e.dir.Document(folder, name))
	if err != nil {
		return domain.Observed{}, err
	}
	if known && state.Run == spec.Run && state.Hash == spec.Hash {
		return state.Observed(), nil // the same specification was written again, which changes nothing
	}
	o := pending(spec)
	if inForce {
		o.Hash, o.Run = spec.Hash, spec.Run
	}
	return o, nil
}

// instance returns the mark of a member's processes; empty if none run. Those of an earlier specification may still run
// while the member is pending under the next one.
func (e *Engine) instance(name string, listed statedir.Stamp) (string, error) {
	state, err := e.states.Read(name, listed)
	if err != nil && !errors.Is(err, engine.ErrNotFound) {
		return "", err
	}
	if state.State != domain.StateRunning {
		return "", nil
	}
	return state.Instance, nil
}

// Stage writes the specifications, including what members inherit from the environment of this process: a supervisor
// started by somebody else must not pass on its own.
func (e *Engine) Stage(_ context.Context, specs []domain.MemberSpec) error {
	base := e.environment()
	for _, spec := range specs {
		if !e.contained(spec) { // an image has its own environment
			env := maps.Clone(base)
			maps.Copy(env, spec.Env)
			spec.Env = env
		}
		if err := e.dir.WriteSecrets(spec); err != nil {
			return err
		}
		if err := statedir.Write(e.dir.Document(statedir.Staged, spec.Name), spec, e.durability()); err != nil {
			return err
		}
	}
	return nil
}

// durability is that of specifications and requests to start them. A host's members come back after a power loss; on
// Terraform's machine, an apply starts too many of them to flush each.
func (e *Engine) durability() statedir.Durability { return statedir.Durability(e.site.Units) }

// contained reports whether a member runs as a container.
func (e *Engine) contained(spec domain.MemberSpec) bool { return e.site.Containers && spec.Image != "" }

// Start asks the supervisor to apply the staged specifications. The request is one file, so that it covers all or none.
func (e *Engine) Start(ctx context.Context, group string, run int) error {
	staged, err := e.Staged(group, run)
	if err != nil || len(staged) == 0 {
		return err
	}
	start := statedir.Start{Group: group, Run: run}
	for _, o := range staged {
		start.Members = append(start.Members, o.Name)
	}
	if err := statedir.Write(e.dir.Document(statedir.Starts, start.Name()), start, e.durability()); err != nil {
		return err
	}
	return e.supervise(ctx)
}

// Stop asks the supervisor to end members that are still in the given runs.
func (e *Engine) Stop(ctx context.Context, runs map[string]int, reason domain.StopReason) error {
	for name, run := range runs {
		spec, err := statedir.Read[domain.MemberSpec](e.dir.Document(statedir.Specs, name))
		if errors.Is(err, engine.ErrNotFound) {
			continue
		}
		if err != nil {
			return err
		}
		if spec.Run != run {
			continue
		}
		if err := statedir.Write(e.dir.Document(statedir.Stops, name), statedir.Stop{Run: run, Reason: reason},
			statedir.Volatile); err != nil {
			return err
		}
	}
	return e.supervise(ctx)
}

// Remove withdraws the specifications, so that the supervisor ends and forgets the members. It waits until the
// supervisor has noticed: in the middle of a start, it may restore what was just withdrawn, or be about to start a
// member that is not visible yet.
func (e *Engine) Remove(ctx context.Context, names []string) error {
	for {
		withdrawn, err := e.dir.Withdraw(names, e.durability())
		if err != nil {
			return err
		}
		if err := e.supervise(ctx); err != nil || !withdrawn {
			return err
		}
		if err := e.awaitRequests(ctx); err != nil {
			return err
		}
	}
}

const (
	// requestsPatience bounds the wait for start requests: one that can't be carried out stays forever.
	requestsPatience = 5 * time.Second
	requestsLook     = 2 * time.Millisecond
)

// awaitRequests returns once the supervisor has handled all requests made so far.
func (e *Engine) awaitRequests(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, requestsPatience)
	defer cancel()
	// An empty request comes after all others. If it can't be written, as on a full disk, only pending starts are
	// awaited.
	last := statedir.Start{}
	_ = statedir.Write(e.dir.Document(statedir.Starts, last.Name()), last, statedir.Volatile)
	look := time.NewTicker(requestsLook)
	defer look.Stop()
	for {
		starts, err := e.starts()
		if err != nil || len(starts) == 0 {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-look.C:
		}
	}
}

// Evict removes members, and returns when they are gone.
func (e *Engine) Evict(ctx context.Context, names []string) error {
	return e.evict(ctx, func(o domain.Observed) bool { return slices.Contains(names, o.Name) })
}

// removeAll removes the members of all groups, and returns when they are gone.
func (e *Engine) removeAll(ctx context.Context) error {
	return e.evict(ctx, func(domain.Observed) bool { return true })
}

func (e *Engine) evict(ctx context.Context, which func(domain.Observed) bool) error {
	return e.await(ctx, "members of cluster "+e.dir.Cluster, func() (bool, error) {
		observed, err := e.Observe(ctx, "")
		if err != nil {
			return true, err
		}
		var names []string
		for _, o := range observed {
			if which(o) {
				names = append(names, o.Name)
			}
		}
		if len(names) == 0 {
			return true, nil
		}
		return false, e.Remove(ctx, names)
	})
}

// Staged returns the members of a group that have a staged specification for run, as they will be in that run.
func (e *Engine) Staged(group string, run int) ([]domain.Observed, error) {
	staged, err := e.dir.Names(statedir.Staged)
	if err != nil {
		return nil, err
	}
	var members []domain.Observed
	for name := range staged {
		if !statedir.MayBeOf(name, group) {
			continue
		}
		spec, err := statedir.Read[domain.MemberSpec](e.dir.Document(statedir.Staged, name))
		if err != nil && !errors.Is(err, engine.ErrNotFound) {
			return nil, err
		}
		if err == nil && spec.Group == group && spec.Run == run {
			o := pending(spec)
			o.Hash, o.Run = spec.Hash, spec.Run
			members = append(members, o)
		}
	}
	return members, nil
}

// inherited are the variables that members inherit from the environment of the apply: what programs need to run on this
// machine, and nothing that could be a secret.
var inherited = []string{
	"PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "TMPDIR", "LD_LIBRARY_PATH",
	"XDG_RUNTIME_DIR",
}

const defaultPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// environment is what members inherit.
func (e *Engine) environment() map[string]string {
	if e.site.Environment != nil {
		return e.site.Environment
	}
	return baseEnvironment()
}

func baseEnvironment() map[string]string {
	env := map[string]string{"PATH": defaultPath}
	for _, name := range inherited {
		if value, set := os.LookupEnv(name); set && value != "" {
			env[name] = value
		}
	}
	return env
}
