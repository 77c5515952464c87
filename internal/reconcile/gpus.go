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

// StalePlanError means that hosts or devices shown in a plan are no longer available.
type StalePlanError struct {
	Group string
	// Members describe, for each member, what was planned and what would be assigned now.
	Members []string
}

// Error says what to do about it.
func (e *StalePlanError) Error() string {
	return fmt.Sprintf("hosts or GPUs planned for members of group %q are no longer available: %s. Nothing was "+
		"changed; plan and apply again",
		e.Group, strings.Join(e.Members, "; "))
}

// usesGPUs reports whether any role of a group asks for GPUs.
func usesGPUs(g domain.Group) bool {
	for _, role := range g.Roles {
		if role.GPUs != nil {
			return true
		}
	}
	return false
}

// DeviceStates returns the states of the devices of pools, by UUID, from what was found on the hosts. The groups, as
// they are and as they will be, show which devices members hold.
func DeviceStates(
	pools map[string]domain.GPUPoolDocument, found map[string]domain.HostGPUs,
	groups ...map[string]domain.GroupDocument,
) map[string]placement.DeviceState {
	held := heldDevices(groups)
	states := map[string]placement.DeviceState{}
	for _, pool := range pools {
		trouble := Examine(pool, found).Trouble
		for host, devices := range pool.Devices {
			for _, device := range devices {
				if state := deviceState(device.UUID, found[host], trouble[device.UUID],
					held[device.UUID]); state != (placement.DeviceState{}) {
					states[device.UUID] = state
				}
			}
		}
	}
	return states
}

// heldDevices returns the UUIDs of the devices that members of these groups hold.
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

// foreignUse describes the processes on a device that belong to no member, or returns "". An agent in a container can't
// see the host's processes, so memory in use on a device that no member holds counts as such, too.
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

// gpuReport is what the hosts of a cluster reported about their GPUs.
type gpuReport struct {
	hosts map[string]domain.HostGPUs
	// groups are the documents at the time of the report: memory in use on a device belongs to the
	// member that held it then.
	groups map[string]domain.GroupDocument
}

// errUnreportedGPUs means that devices have to be chosen, and that some hosts have not reported theirs.
var errUnreportedGPUs = errors.New("hosts kept joining the cluster while GPUs were chosen; run terraform apply again")

// asks is how often the hosts are asked if new hosts keep joining.
const asks = 3

// asking runs do, which decides about a group under the allocation lock. Asking the hosts about their GPUs may be slow,
// so it happens without that lock: beforehand for a group that can't hold any devices yet, and otherwise once do
// returns [errUnreportedGPUs], whereupon do runs again. Foreign use of a device may thus be some seconds old; do reads
// itself who holds which device.
func (r Reconciler) asking(ctx context.Context, group domain.Group, do func(by *gpuReport) error) error {
	var missing error
	if usesGPUs(group) {
		_, missing = engine.Get[domain.GroupDocument](ctx, r.Engine, group.Name)
	}
	err := errUnreportedGPUs
	if !errors.Is(missing, engine.ErrNotFound) { // do reports other errors
		err = do(nil)
	}
	for i := 0; i < asks && errors.Is(err, errUnreportedGPUs); i++ {
		now := r.Engine.Snapshot()
		var by gpuReport
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

// of returns t if it covers all of these hosts, or else nil: some have joined since.
func (t *gpuReport) of(hosts map[string]domain.Host) *gpuReport {
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

// Decide is [Decide] with the hosts and devices that were planned for the members. It asks the hosts about
// their GPUs if members get devices that they don't hold yet. It returns a [*StalePlanError] if a planned
// place is no longer available.
func (r Reconciler) Decide(ctx context.Context, view View, spec domain.Group) (Decision, domain.Problems, error) {
	decision, problems, err := r.decide(view, spec, nil)
	if !errors.Is(err, errUnreportedGPUs) {
		return decision, problems, err
	}
	found, err := r.Engine.GPUs(ctx)
	if err != nil {
		return Decision{}, nil, err
	}
	return r.decide(view, spec, &gpuReport{hosts: found, groups: view.Stored})
}

// decide is [Reconciler.Decide] with what the hosts reported, or [errUnreportedGPUs] if they have to be asked first.
func (r Reconciler) decide(
	view View, spec domain.Group, by *gpuReport,
) (decision Decision, problems domain.Problems, err error) {
	stored := view.Groups[spec.Name]
	if len(r.Planned) > 0 {
		view.Groups = maps.Clone(view.Groups)
		view.Groups[spec.Name] = asPlanned(stored, r.Planned)
	}
	view.Devices = lostDevices(troubleIn(view.Pools))
	view.Leave = slices.DeleteFunc(slices.Clone(view.Leave),
		func(member string) bool { _, planned := r.Planned[member]; return planned })
	decision, problems = Decide(view, spec)
	if !usesGPUs(spec) || problems.Err() == nil && keepsGPUs(decision, stored) {
		return decision, problems, nil
	}
	if by == nil {
		return Decision{}, nil, errUnreportedGPUs
	}
	view.Devices = DeviceStates(view.Pools, by.hosts, view.occupants(), view.Stored, by.groups)
	decision, problems = Decide(view, spec)
	if problems.Err() == nil {
		err = checkPlanned(decision, stored, view, r.Planned)
	}
	return decision, problems, err
}

// keepsGPUs reports whether no member gets devices other than those assigned in the stored document.
func keepsGPUs(decision Decision, stored domain.GroupDocument) bool {
	for member, at := range decision.Document.Assignments {
		if at.GPUs != "" && (at.GPUs != stored.Assignments[member].GPUs || at.Host != stored.Assignments[member].Host) {
			return false
		}
	}
	return true
}

// asPlanned overrides the assignments of a document with the planned ones.
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

// checkPlanned returns a [*StalePlanError] if members do not get the planned hosts and devices, or if one of these
// devices has become unavailable.
func checkPlanned(
	decision Decision, stored domain.GroupDocument, view View, planned map[string]domain.Assignment,
) error {
	stale := &StalePlanError{Group: decision.Document.Spec.Name}
	for _, member := range slices.Sorted(maps.Keys(planned)) {
		at, now := planned[member], decision.Document.Assignments[member]
		if at.Host != now.Host || at.GPUs != now.GPUs {
			stale.Members = append(stale.Members,
				fmt.Sprintf("%s was planned on %s, and would now be on %s", member, at.Place(), now.Place()))
			continue
		}
		for _, uuid := range at.GPUs.UUIDs() {
			had := slices.Contains(stored.Assignments[member].GPUs.UUIDs(), uuid)
			if why := unavailable(view, uuid); why != "" && !had {
				stale.Members = append(stale.Members,
					fmt.Sprintf("%s was to get %s of host %s: %s", member, uuid, at.Host, why))
			}
		}
	}
	if len(stale.Members) > 0 {
		return stale
	}
	return nil
}

// unavailable returns the reason why a device can't be given to a member that does not hold it, or "".
func unavailable(view View, uuid string) string {
	state := view.Devices[uuid]
	for _, pool := range view.Pools {
		if state.Busy != "" && pool.Spec.ForeignRule() == domain.ForeignAvoid && pool.Has(uuid) {
			return "it is used by " + state.Busy
		}
	}
	return cmp.Or(state.Lost, state.Closed)
}
