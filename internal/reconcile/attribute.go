package reconcile

import (
	"maps"
	"math"
	"slices"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
)

// attribute is one that a role declares, or else its group for all roles, and that somebody may change of a member that runs.
type attribute struct {
	// path leads to it from the role.
	path domain.Path
	// declares tells whether a template declares it: the role's, or else the group's; nil where only roles do.
	declares func(t domain.Template) bool
	// differs compares two normal specifications.
	differs func(want, live domain.MemberSpec) bool
	// lay has a role declare the live value instead of what makes want, and tells whether that can be told from what
	// is declared. It writes to nothing that the two roles share.
	lay func(declared domain.Role, role *domain.Role, want, live domain.MemberSpec) bool
}

// field is an attribute: get returns its value in a specification, and at where a role declares it.
type field[T any] struct {
	path     domain.Path
	declares func(t domain.Template) bool
	get      func(s *domain.MemberSpec) T
	at       func(r *domain.Role) *T
	// merge returns what is to be declared for a member to be live, where what is declared makes want; nil for [overlay].
	merge func(declared, want, live T) T
}

func (f field[T]) attribute() attribute {
	merge := f.merge
	if merge == nil {
		merge = overlay
	}
	return attribute{
		path: f.path, declares: f.declares,
		differs: func(want, live domain.MemberSpec) bool { return !same(f.get(&want), f.get(&live)) },
		lay: func(declared domain.Role, role *domain.Role, want, live domain.MemberSpec) bool {
			if f.at == nil {
				return false // no role declares anything of the kind
			}
			merged := merge(*f.at(role), f.get(&want), f.get(&live))
			*f.at(role) = merged
			return !same(*f.at(&declared), merged)
		},
	}
}

// attributesOf returns the attributes in which two specifications can differ.
func attributesOf(want, live domain.MemberSpec) []attribute {
	attributes := slices.Clone(fixedAttributes)
	names := map[string]string{}
	maps.Copy(names, live.Env)
	maps.Copy(names, want.Env)
	for _, name := range slices.Sorted(maps.Keys(names)) {
		attributes = append(attributes, variable(name))
	}
	return attributes
}

// fixedAttributes are those that every specification has.
var fixedAttributes = []attribute{
	field[string]{
		path: domain.Path{"image"}, declares: func(t domain.Template) bool { return t.Image != "" },
		get: func(s *domain.MemberSpec) string { return s.Image }, at: func(r *domain.Role) *string { return &r.Template.Image },
	}.attribute(),
	field[[]string]{
		path: domain.Path{"command"}, declares: func(t domain.Template) bool { return t.Command != nil },
		get: func(s *domain.MemberSpec) []string { return s.Command }, at: func(r *domain.Role) *[]string { return &r.Template.Command },
	}.attribute(),
	field[[]string]{
		// A role's own command drops the group's arguments.
		path: domain.Path{"args"}, declares: func(t domain.Template) bool { return t.Args != nil || t.Command != nil },
		get: func(s *domain.MemberSpec) []string { return s.Args }, at: func(r *domain.Role) *[]string { return &r.Template.Args },
	}.attribute(),
	field[string]{
		path: domain.Path{"working_dir"}, declares: func(t domain.Template) bool { return t.WorkingDir != "" },
		get: func(s *domain.MemberSpec) string { return s.WorkingDir }, at: func(r *domain.Role) *string { return &r.Template.WorkingDir },
	}.attribute(),
	field[[]domain.Mount]{
		path: domain.Path{"mounts"}, declares: func(t domain.Template) bool { return t.Mounts != nil },
		get: func(s *domain.MemberSpec) []domain.Mount { return s.Mounts }, at: func(r *domain.Role) *[]domain.Mount { return &r.Template.Mounts },
		merge: overlayMounts,
	}.attribute(),
	field[float64]{
		path: domain.Path{"resources", "cpus"},
		get:  func(s *domain.MemberSpec) float64 { return rounded(s.Resources.CPUs) }, at: func(r *domain.Role) *float64 { return &r.Resources.CPUs },
	}.attribute(),
	field[int64]{
		path: domain.Path{"resources", "memory_mib"},
		get:  func(s *domain.MemberSpec) int64 { return s.Resources.MemoryMiB }, at: func(r *domain.Role) *int64 { return &r.Resources.MemoryMiB },
	}.attribute(),
	field[float64]{
		path: domain.Path{"resources", "limits", "cpus"},
		get:  func(s *domain.MemberSpec) float64 { return rounded(s.Resources.Limits.CPUs) }, at: func(r *domain.Role) *float64 { return &r.Resources.Limits.CPUs },
	}.attribute(),
	field[int64]{
		path: domain.Path{"resources", "limits", "memory_mib"},
		get:  func(s *domain.MemberSpec) int64 { return s.Resources.Limits.MemoryMiB }, at: func(r *domain.Role) *int64 { return &r.Resources.Limits.MemoryMiB },
	}.attribute(),
	field[*domain.Duration]{
		path: domain.Path{"grace_period"},
		get:  func(s *domain.MemberSpec) *domain.Duration { return &s.GracePeriod }, at: func(r *domain.Role) **domain.Duration { return &r.GracePeriod },
		merge: func(_, _, live *domain.Duration) *domain.Duration { return live },
	}.attribute(),
	field[domain.Strategy]{
		path: domain.Path{"placement", "strategy"},
		get:  func(s *domain.MemberSpec) domain.Strategy { return s.Placement.Strategy }, at: func(r *domain.Role) *domain.Strategy { return &r.Placement.Strategy },
	}.attribute(),
	field[map[string]string]{
		path: domain.Path{"placement", "labels"},
		get:  func(s *domain.MemberSpec) map[string]string { return s.Placement.Labels }, at: func(r *domain.Role) *map[string]string { return &r.Placement.Labels },
	}.attribute(),
	field[[]string]{
		path: domain.Path{"placement", "hosts"},
		get:  func(s *domain.MemberSpec) []string { return s.Placement.Hosts }, at: func(r *domain.Role) *[]string { return &r.Placement.Hosts },
		merge: func(_, _, live []string) []string { return live }, // their order means nothing
	}.attribute(),

	field[domain.Update]{
		path: domain.Path{"update"},
		get:  func(s *domain.MemberSpec) domain.Update { return s.Update }, at: func(r *domain.Role) *domain.Update { return &r.Update },
	}.attribute(),

	contained("pull_policy", func(c *domain.Container) *domain.PullPolicy { return &c.PullPolicy }),
	contained("init", func(c *domain.Container) *bool { return &c.Init }),
	contained("stop_signal", func(c *domain.Container) *string { return &c.StopSignal }),
	contained("shm_size_mib", func(c *domain.Container) *int64 { return &c.ShmSizeMiB }),
	contained("ulimits", func(c *domain.Container) *map[string]domain.Ulimit { return &c.Ulimits }),
	contained("health_check", func(c *domain.Container) **domain.HealthCheck { return &c.HealthCheck }),
	contained("logging", func(c *domain.Container) **domain.Logging { return &c.Logging }),
	contained("ports", func(c *domain.Container) *map[string]domain.PublishedPort { return &c.Ports }),
	contained("configs", func(c *domain.Container) *map[string]domain.ConfigFile { return &c.Configs }),
	contained("secrets", func(c *domain.Container) *map[string]domain.SecretFile { return &c.Secrets }),

	// What the role declares otherwise, or not at all.
	field[domain.RestartRule]{path: domain.Path{"restart"}, get: func(s *domain.MemberSpec) domain.RestartRule { return s.Restart }}.attribute(),
	field[[]domain.File]{path: domain.Path{"files"}, get: func(s *domain.MemberSpec) []domain.File { return s.Files }}.attribute(),
	field[string]{path: domain.Path{"placement"}, get: func(s *domain.MemberSpec) string { return s.Host }}.attribute(),
}

// contained returns the attribute for a part of a container's settings.
func contained[T any](name string, part func(c *domain.Container) *T) attribute {
	return field[T]{
		path: domain.Path{"container", name}, declares: func(t domain.Template) bool { return t.Container != nil },
		get: func(s *domain.MemberSpec) T { return *part(&s.Container) },
		at: func(r *domain.Role) *T {
			var own domain.Container
			if r.Template.Container != nil {
				own = *r.Template.Container
			}
			r.Template.Container = &own
			return part(&own)
		},
	}.attribute()
}

// variable returns the attribute that a variable of the environment is.
func variable(name string) attribute {
	return field[map[string]string]{
		path:     domain.Path{"env", domain.Key(name)},
		declares: func(t domain.Template) bool { _, declared := t.Env[name]; return declared },
		get: func(s *domain.MemberSpec) map[string]string {
			if value, set := s.Env[name]; set {
				return map[string]string{name: value}
			}
			return nil
		},
		at: func(r *domain.Role) *map[string]string { return &r.Template.Env },
		merge: func(declared, _, live map[string]string) map[string]string {
			merged := map[string]string{}
			maps.Copy(merged, declared)
			delete(merged, name)
			maps.Copy(merged, live)
			return merged
		},
	}.attribute()
}

// rounded leaves out what is lost of a number of CPUs where engines count in billionths.
func rounded(cpus float64) float64 { return math.Round(cpus*1e6) / 1e6 }
