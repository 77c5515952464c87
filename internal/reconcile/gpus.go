package reconcile

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
	"github.com/trainyard/terraform-provider-trainyard/internal/placement"
)

// StalePlanError is returned where devices that a plan showed are no longer to be had.
type StalePlanError struct {
	Group string
	// Members say what was planned for each member, and what there would be now.
	Members []string
}

// Error says what to do about it.
func (e *StalePlanError) Error() string {
	return fmt.Sprintf("since the plan was made, hosts or GPUs that it gave to members of group %q are no longer to be had: %s. Nothing was changed; plan and apply again",
		e.Group, strings.Join(e.Members, "; "))
}

// usesGPUs reports whether a role of a group asks for GPUs.
func usesGPUs(g domain.Group) bool {
	for _, role := range g.Roles {
		if role.GPUs != nil {
			return true
		}
	}
	return false
}

// DeviceStates returns what there is to say of the devices of pools, by what was found on the hosts. Groups, as they
// are and as they will be, tell which devices members have.
func DeviceStates(pools map[string]domain.GPUPoolDocument, found map[string]domain.HostGPUs, groups ...map[string]domain.GroupDocument) map[string]placement.DeviceState {
	held := heldDevices(groups)
	states := map[string]placement.DeviceState{}
	for _, pool := range pools {
		trouble := Examine(pool, found).Trouble
		for host, devices := range pool.Devices {
			for _, device := range devices {
				if state := deviceState(device.UUID, found[host], trouble[device.UUID], held[device.UUID]); state != (placement.DeviceState{}) {
					states[device.UUID] = state
				}
			}
		}
	}
	return states
}

// heldDevices are those that members of some groups have, by UUID.
func heldDevices(groups []map[string]domain.GroupDocument) map[string]bool {
	held := map[string]bool{}
	for _, documents := range groups {
		for _, group := range documents {
			for _, assigned := range group.Assignments {
				for _, uuid := range assigned.GPUs.UUIDs() {
					held[uuid] = true
				}
			}
		}
	}
	return held
}

func deviceState(uuid string, found domain.HostGPUs, trouble string, held bool) placement.DeviceState {
	if trouble != "" {
		return placement.DeviceState{Lost: trouble}
	}
	if i := indexOf(found.GPUs, uuid); i >= 0 {
		return placement.DeviceState{Busy: foreignUse(found.GPUs[i], held)}
	}
	return placement.DeviceState{Closed: found.Unknown}
}

// foreignUse says in words which processes use a device that are no member's; "" where there are none. An agent in a
// container does not see the processes of its host: of a device that no member has, what is in use of its memory tells.
func foreignUse(g domain.GPU, held bool) string {
	var users []string
	for _, p := range g.Processes {
		if p.Member == "" {
			users = append(users, processText(p))
		}
	}
	if len(g.Processes) == 0 && !held && g.MemoryUsedMiB != nil && *g.MemoryUsedMiB > domain.UnseenUseMiB {
		return fmt.Sprintf("processes that its agent can't see (%d MiB)", *g.MemoryUsedMiB)
	}
	return strings.Join(users, ", ")
}

// processText names a process, such as "python (process 4711)".
func processText(p domain.GPUProcess) string {
	if p.Command == "" {
		return fmt.Sprintf("process %d", p.PID)
	}
	return fmt.Sprintf("%s (process %d)", p.Command, p.PID)
}

// told is what the hosts of a cluster told of their GPUs.
type told struct {
	hosts map[string]domain.HostGPUs
	// groups are the documents of the cluster's groups as they were before: what is in use of a device is that of the
	// member that had it then.
	groups map[string]domain.GroupDocument
}

// errUntold means that devices have to be chosen, and that not all hosts have told of theirs.
var errUntold = errors.New("hosts joined the cluster again and again while GPUs were chosen; apply again")

// asks is how often the hosts are asked where others have joined since.
const asks = 3

// asking does what decides about a group under the allocation lock. To ask the hosts about their GPUs may take long,
// and is done while nobody holds that: at once where there is no group yet that could have any, else where do fails
// with [errUntold], and then is done again with what they told. What is used of a device by others may be some seconds
// old; who has which device it reads itself.
func (r Reconciler) asking(ctx context.Context, group domain.Group, do func(by *told) error) error {
	var missing error
	if usesGPUs(group) {
		_, missing = engine.Get[domain.GroupDocument](ctx, r.Engine, group.Name)
	}
	err := errUntold
	if !errors.Is(missing, engine.ErrNotFound) { // what else is wrong is found by do
		err = do(nil)
	}
	for i := 0; i < asks && errors.Is(err, errUntold); i++ {
		now := r.Engine.Snapshot()
		var by told
		if by.groups, err = engine.List[domain.GroupDocument](ctx, now); err != nil {
			return err
		}
		sweeps, unread := Reconciler{Engine: now}.occupiedBySweeps(ctx)
		if unread != nil {
			return unread
		}
		by.groups = View{Groups: by.groups, Sweeps: sweeps}.occupants()
		if by.hosts, err = now.GPUs(ctx); err != nil {
			return err
		}
		err = do(&by)
	}
	return err
}

// of returns what was told, or nil where some hosts of a cluster have not: those that have joined it since.
func (t *told) of(hosts map[string]domain.Host) *told {
	for name := range hosts {
		if t == nil {
			return nil
		}
		if _, asked := t.hosts[name]; !asked {
			return nil
		}
	}
	return t
}

// Decide is [Decide] for a group whose members get the hosts and devices that are planned for them. Where they get
// devices that they do not have, the hosts are asked about theirs before. It fails with a [*StalePlanError] where what
// is planned can't be had any more.
func (r Reconciler) Decide(ctx context.Context, view View, spec domain.Group) (Decision, domain.Problems, error) {
	decision, problems, err := r.decide(view, spec, nil)
	if !errors.Is(err, errUntold) {
		return decision, problems, err
	}
	found, err := r.Engine.GPUs(ctx)
	if err != nil {
		return Decision{}, nil, err
	}
	return r.decide(view, spec, &told{hosts: found, groups: view.Stored})
}

// decide is [Reconciler.Decide] by what the hosts told, or [errUntold] where they have to be asked before.
func (r Reconciler) decide(view View, spec domain.Group, by *told) (decision Decision, problems domain.Problems, err error) {
	stored := view.Groups[spec.Name]
	if len(r.Planned) > 0 {
		view.Groups = maps.Clone(view.Groups)
		view.Groups[spec.Name] = asPlanned(stored, r.Planned)
	}
	view.Devices = lostDevices(troubleIn(view.Pools))
	view.Leave = slices.DeleteFunc(slices.Clone(view.Leave), func(member string) bool { _, planned := r.Planned[member]; return planned })
	decision, problems = Decide(view, spec)
	if !usesGPUs(spec) || problems.Err() == nil && keepsGPUs(decision, stored) {
		return decision, problems, nil
	}
	if by == nil {
		return Decision{}, nil, errUntold
	}
	view.Devices = DeviceStates(view.Pools, by.hosts, view.occupants(), view.Stored, by.groups)
	decision, problems = Decide(view, spec)
	if problems.Err() == nil {
		err = checkPlanned(decision, stored, view, r.Planned)
	}
	return decision, problems, err
}

// keepsGPUs reports whether members have no other devices than a document has assigned to them.
func keepsGPUs(decision Decision, stored domain.GroupDocument) bool {
	for member, at := range decision.Document.Assignments {
		if at.GPUs != "" && (at.GPUs != stored.Assignments[member].GPUs || at.Host != stored.Assignments[member].Host) {
			return false
		}
	}
	return true
}

// asPlanned lays what a plan showed of members over what a document has assigned to them.
func asPlanned(previous domain.GroupDocument, planned map[string]domain.Assignment) domain.GroupDocument {
	if len(planned) == 0 {
		return previous
	}
	assignments := maps.Clone(previous.Assignments)
	if assignments == nil {
		assignments = map[string]domain.Assignment{}
	}
	for member, at := range planned {
		if assignments[member].Host == at.Host {
			at.Port = assignments[member].Port
		}
		assignments[member] = at
	}
	previous.Assignments = assignments
	return previous
}

// checkPlanned returns a [*StalePlanError] where members do not get the hosts and devices that a plan showed, or should
// not any more.
func checkPlanned(decision Decision, stored domain.GroupDocument, view View, planned map[string]domain.Assignment) error {
	stale := &StalePlanError{Group: decision.Document.Spec.Name}
	for _, member := range slices.Sorted(maps.Keys(planned)) {
		at, now := planned[member], decision.Document.Assignments[member]
		if at.Host != now.Host || at.GPUs != now.GPUs {
			stale.Members = append(stale.Members, fmt.Sprintf("%s was to be on %s, and would be on %s", member, at.Place(), now.Place()))
			continue
		}
		for _, uuid := range at.GPUs.UUIDs() {
			had := slices.Contains(stored.Assignments[member].GPUs.UUIDs(), uuid)
			if why := unavailable(view, uuid); why != "" && !had {
				stale.Members = append(stale.Members, fmt.Sprintf("%s was to have %s of host %s: %s", member, uuid, at.Host, why))
			}
		}
	}
	if len(stale.Members) > 0 {
		return stale
	}
	return nil
}

// unavailable says why a device is not given to a member that does not have it; "" where it is.
func unavailable(view View, uuid string) string {
	state := view.Devices[uuid]
	for _, pool := range view.Pools {
		if state.Busy != "" && pool.Spec.ForeignRule() == domain.ForeignAvoid && pool.Has(uuid) {
			return "it is used by " + state.Busy
		}
	}
	return cmp.Or(state.Lost, state.Closed)
}
