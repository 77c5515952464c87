package sweep

import (
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/topology"
)

// framework is the framework of sweeps as groups: their members know nothing of each other.
const framework = "none"

// GroupOf returns runs of a sweep as a group, each the only member of the role named by its key. An attempt is never
// restarted by the engine, as this package decides what happens after it ended.
func GroupOf(s domain.Sweep, keys ...string) domain.Group {
	one := 1
	g := domain.Group{
		Cluster: s.Cluster, Name: s.Name, Framework: framework, Template: s.Template,
		Roles:        make(map[string]domain.Role, len(keys)),
		RestartScope: domain.ScopeGroup, WaitFor: domain.WaitRunning,
	}
	for _, key := range keys {
		g.Roles[key] = domain.Role{
			Template: domain.Template{Env: s.Runs[key]}, Replicas: &one, Resources: s.Resources, GPUs: s.GPUs,
			Placement:   s.Placement,
			GracePeriod: s.GracePeriod, ExitCodes: s.ExitCodes,
		}
	}
	return g
}

// Occupancy returns what the active runs of a sweep occupy, as the document of a group.
func Occupancy(s domain.Sweep, runs map[string]domain.Run) domain.GroupDocument {
	assignments, counts := map[string]domain.Assignment{}, map[string]int{}
	for key, run := range runs {
		if run.Active() {
			assignments[domain.RunName(s.Name, key)], counts[key] = *run.Assignment, 1
		}
	}
	doc := domain.GroupDocument{
		Spec: GroupOf(s, slices.Collect(maps.Keys(counts))...), Counts: counts, Assignments: assignments,
	}
	for key, role := range doc.Spec.Roles {
		if needs := runs[key].Needs; needs != nil {
			role.Resources, role.GPUs = needs.Resources, needs.GPUs
			doc.Spec.Roles[key] = role
		}
	}
	return doc
}

// Variables that runs get in addition to those of all members.
const (
	runVariable     = domain.ReservedPrefix + "RUN"
	attemptVariable = domain.ReservedPrefix + "ATTEMPT"
	configVariable  = domain.ReservedPrefix + "CONFIG"
	resultsVariable = domain.ReservedPrefix + "RESULTS"
)

// Site is how members of a cluster are reached, and where they find their files.
type Site struct {
	// Address is that of the member's host, or of the member itself if it has its own.
	Address  func(member, host string) string
	FilesDir func(member, image string) string
	// WorkDir returns a member's own folder, which outlives it; nil if members have none.
	WorkDir func(member string) string
	// InContainer reports whether members with this image run in containers; nil if none does.
	InContainer func(image string) bool
}

// asTheHost reports whether a member with this image sees its host's files at the same paths, and has a folder there.
func (s Site) asTheHost(image string) bool {
	return s.WorkDir != nil && (s.InContainer == nil || !s.InContainer(image))
}

// Spec renders the specification of the attempt of a run that is about to start.
func Spec(s domain.Sweep, key string, run domain.Run, at Site) (domain.MemberSpec, error) {
	name := domain.RunName(s.Name, key)
	if run.Assignment == nil {
		return domain.MemberSpec{}, fmt.Errorf("run %q of sweep %q has no assignment", key, s.Name)
	}
	m := domain.Member{Name: name, Role: key}
	m.Place(domain.SchedulingPinned, *run.Assignment, at.Address(name, run.Assignment.Host))
	spec, err := topology.NewLayout(GroupOf(s, key), []domain.Member{m}, at.FilesDir).Spec(0)
	if err != nil {
		return spec, err
	}
	spec.Run = run.Batch
	spec.Env[runVariable], spec.Env[attemptVariable] = key, strconv.Itoa(run.Attempts)
	give(&spec, s.Run(key), run, at)
	return spec, nil
}
