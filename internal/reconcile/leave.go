package reconcile

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
	"github.com/trainyard/terraform-provider-trainyard/internal/placement"
)

// troubleIn returns what is wrong with the devices of pools, by UUID.
func troubleIn(pools map[string]domain.GPUPoolDocument) map[string]string {
	trouble := map[string]string{}
	for _, pool := range pools {
		maps.Copy(trouble, pool.Trouble)
	}
	return trouble
}

// poolTrouble returns what is wrong with the devices of the cluster's pools; nil for a group without GPUs.
func (r Reconciler) poolTrouble(ctx context.Context, spec domain.Group) (map[string]string, error) {
	if !usesGPUs(spec) {
		return nil, nil
	}
	pools, err := engine.List[domain.GPUPoolDocument](ctx, r.Engine)
	return troubleIn(pools), err
}

// lostDevices returns the states of devices in trouble as known without asking the hosts.
func lostDevices(trouble map[string]string) map[string]placement.DeviceState {
	states := make(map[string]placement.DeviceState, len(trouble))
	for uuid, why := range trouble {
		states[uuid] = placement.DeviceState{Lost: why}
	}
	return states
}

// gpuTrouble describes which of a member's devices can't be used, and why, or returns "".
func gpuTrouble(at domain.Assignment, trouble map[string]string) string {
	var troubles []string
	for _, uuid := range at.GPUs.UUIDs() {
		if why := trouble[uuid]; why != "" {
			troubles = append(troubles, fmt.Sprintf("%s of host %s (%s)", uuid, at.Host, why))
		}
	}
	return strings.Join(troubles, ", ")
}

// withGPUTrouble returns the observed members with GPUTrouble set.
func withGPUTrouble(doc domain.GroupDocument, observed []domain.Observed, trouble map[string]string) []domain.Observed {
	if len(trouble) == 0 {
		return observed
	}
	seen := slices.Clone(observed)
	for i := range seen {
		seen[i].GPUTrouble = gpuTrouble(doc.Assignments[seen[i].Name], trouble)
	}
	return seen
}

// inTrouble returns the names of the members with unusable devices, sorted.
func (g Group) inTrouble() []string {
	var members []string
	for member, at := range g.Document.Assignments {
		if gpuTrouble(at, g.Trouble) != "" {
			members = append(members, member)
		}
	}
	slices.Sort(members)
	return members
}

// Leaving returns the names of the members that an apply moves off unusable devices, if there are others. Members that
// have ended stay, and all members stay if the group has ended: finished is not drift.
func (g Group) Leaving() []string {
	if g.Progress.Phase.Ended() {
		return nil
	}
	done := map[string]bool{}
	for _, o := range g.Observed {
		done[o.Name] = o.State == domain.StateCompleted || o.State == domain.StateStopped
	}
	return slices.DeleteFunc(g.inTrouble(), func(member string) bool { return done[member] })
}

// place is [placement.Place] for members that may be on unusable devices. Those in leave move to other devices if there
// are any, or else stay with a warning that says why; all others stay.
func place(in placement.Input, leave []string) (map[string]domain.Assignment, domain.Problems) {
	lost := map[string]string{}
	for uuid, state := range in.Devices {
		lost[uuid] = state.Lost
	}
	staying, without := map[string]bool{}, map[string]bool{}
	var leaving []domain.Member
	for _, m := range in.Members {
		if gpuTrouble(in.Current[m.Name], lost) == "" {
			continue
		}
		staying[m.Name] = true
		if slices.Contains(leave, m.Name) {
			leaving = append(leaving, m)
		} else {
			without[m.Name] = true
		}
	}
	in.Staying = without
	assignments, problems := placement.Place(in)
	if len(leaving) == 0 || problems.Err() == nil {
		return assignments, problems
	}

	// Not all can move: as many do as can, one after another.
	in.Staying = staying
	if assignments, problems = placement.Place(in); problems.Err() != nil {
		return nil, problems
	}
	var rest []stuck
	for _, m := range leaving {
		trouble, host := gpuTrouble(in.Current[m.Name], lost), in.Current[m.Name].Host
		if i := slices.IndexFunc(rest, func(s stuck) bool { return s.role == m.Role && s.host == host }); i >= 0 {
			rest[i].members[trouble] = append(rest[i].members[trouble], m.Name) // blocked by the same
			continue
		}
		delete(staying, m.Name)
		next, refused := placement.Place(in)
		if err := refused.Err(); err != nil {
			staying[m.Name] = true
			rest = append(rest, stuck{m.Role, host, map[string][]string{trouble: {m.Name}}, err})
			continue
		}
		assignments, problems = next, refused
	}
	for _, s := range rest {
		problems = append(problems, s.warning())
	}
	return assignments, problems
}

// stuck are members of a role on one host that can't leave unusable devices.
type stuck struct {
	role, host string
	// members are their names, by what is wrong with their devices.
	members map[string][]string
	// cause is why there are no other devices.
	cause error
}

func (s stuck) warning() domain.Problem {
	var parts []string
	for _, trouble := range slices.Sorted(maps.Keys(s.members)) {
		parts = append(parts, trouble+": "+domain.Enumerate(s.members[trouble]))
	}
	return domain.Problem{
		Path: domain.Path{"roles", domain.Key(s.role), "gpus"}, Summary: "GPU can't be used", Warning: true,
		Detail: fmt.Sprintf("members of role %q stay on GPUs that can't be used, as no others are available: %s; %v",
			s.role, strings.Join(parts, "; "), s.cause),
	}
}
