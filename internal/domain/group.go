package domain

import (
	"bytes"
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"time"
)

// Group is the specification of a set of roles whose members know each other: one training job, one Spark cluster, one
// broker set. It holds what the user wrote; accessors fill in the defaults.
type Group struct {
	Cluster   string `json:"cluster"`
	Name      string `json:"name"`
	Framework string `json:"framework"`
	// Template holds the defaults of all roles.
	Template
	Roles        map[string]Role   `json:"roles"`
	Completion   Completion        `json:"completion,omitzero"`
	RestartScope RestartScope      `json:"restart_scope"`
	WaitFor      WaitFor           `json:"wait_for"`
	Triggers     map[string]string `json:"triggers,omitempty"`
	// Priority decides who gets room when there is too little: roles under a policy yield to groups and sweeps of
	// higher priority.
	Priority int `json:"priority,omitempty"`
}

// Template says what a member runs. The strings in Command, Args and the values of Env may hold templates that refer to
// members, see package topology. A role's empty list overrides that of its group; nil inherits it.
type Template struct {
	Image      string            `json:"image,omitempty"`
	Command    []string          `json:"command,omitzero"`
	Args       []string          `json:"args,omitzero"`
	Env        map[string]string `json:"env,omitempty"`
	WorkingDir string            `json:"working_dir,omitempty"`
	Mounts     []Mount           `json:"mounts,omitzero"`
	// Container is for engines that run containers; nil means the engine's defaults.
	Container *Container `json:"container,omitempty"`
}

// Over returns t with omitted fields taken from defaults; Env is merged by name. A role's own Command drops the default
// Args, as a container's entrypoint drops the image's arguments. Empty lists are nil in the result.
func (t Template) Over(defaults Template) Template {
	if t.Image == "" {
		t.Image = defaults.Image
	}
	if t.Args == nil && t.Command == nil {
		t.Args = defaults.Args
	}
	if t.Command == nil {
		t.Command = defaults.Command
	}
	if t.WorkingDir == "" {
		t.WorkingDir = defaults.WorkingDir
	}
	if t.Mounts == nil {
		t.Mounts = defaults.Mounts
	}
	if t.Container == nil {
		t.Container = defaults.Container
	}
	env := maps.Clone(defaults.Env)
	if env == nil {
		env = map[string]string{}
	}
	maps.Copy(env, t.Env)
	t.Env = env
	return t.Compact(Template{})
}

// Compact returns t without the empty lists that mean the same as none, as there is nothing in defaults to override.
func (t Template) Compact(defaults Template) Template {
	if len(defaults.Command) == 0 {
		t.Command = orNil(t.Command)
	}
	if len(defaults.Args) == 0 || t.Command != nil {
		t.Args = orNil(t.Args)
	}
	if len(defaults.Mounts) == 0 {
		t.Mounts = orNil(t.Mounts)
	}
	return t
}

// Mount makes storage visible to a member at the path Target.
type Mount struct {
	// Type defaults to MountBind.
	Type MountType `json:"type,omitempty"`
	// Source is a host path for a bind mount, the name of a volume, or empty for a tmpfs.
	Source   string `json:"source,omitempty"`
	Target   string `json:"target"`
	ReadOnly bool   `json:"read_only,omitempty"`
	// SizeMiB limits the size of a tmpfs; 0 means no limit.
	SizeMiB int64 `json:"size_mib,omitempty"`
	// Driver creates the volume if it does not exist yet; nil means the engine's default.
	Driver *VolumeDriver `json:"driver,omitempty"`
}

// VolumeDriver is a volume driver and its options. Docker's own "local" mounts what they describe: type "nfs", device
// ":/export/data" and options "addr=nas,rw" mount an NFS export.
type VolumeDriver struct {
	Name    string            `json:"name"`
	Options map[string]string `json:"options,omitempty"`
}

// MountType says what is mounted.
type MountType string

// The types of mounts.
const (
	MountBind   MountType = "bind"
	MountVolume MountType = "volume"
	MountTmpfs  MountType = "tmpfs"
)

// MountTypes lists the valid values.
var MountTypes = []MountType{MountBind, MountVolume, MountTmpfs}

// Role is a part of a group: members that run the same program.
type Role struct {
	// Template overrides the group's.
	Template
	// Replicas is the number of members. nil leaves the count unmanaged: it starts at 1 and is kept from then on.
	Replicas *int `json:"replicas,omitempty"`
	// Port is the first port of the role's members; nil gives each member a free one.
	Port      *int                 `json:"port,omitempty"`
	Resources ResourceRequirements `json:"resources,omitzero"`
	// GPUs are what one member asks of a GPU pool; nil means none.
	GPUs      *GPURequest `json:"gpus,omitempty"`
	Placement Placement   `json:"placement,omitzero"`
	Restart   Restart     `json:"restart,omitzero"`
	// OnScale says what a change of the role's count does to the group's other members; empty means OnScaleRestart.
	OnScale OnScale `json:"on_scale,omitempty"`
	// Update says how a change is rolled out to the role's members. It is not part of what they run.
	Update      Update        `json:"update,omitzero"`
	ExitCodes   *ExitCodeRule `json:"exit_codes,omitempty"`
	GracePeriod *Duration     `json:"grace_period,omitempty"`
}

// ResourceRequirements are what one member requests, and its limits. A zero limit means the request.
type ResourceRequirements struct {
	CPUs      float64   `json:"cpus,omitempty"`
	MemoryMiB int64     `json:"memory_mib,omitempty"`
	Limits    Resources `json:"limits,omitzero"`
}

// Limited returns the requirements with zero limits replaced by the requests.
func (r ResourceRequirements) Limited() ResourceRequirements {
	r.Limits = r.Limits.Or(r.Requests())
	return r
}

// Requests returns what is requested.
func (r ResourceRequirements) Requests() Resources { return Resources{r.CPUs, r.MemoryMiB} }

// Resources are amounts of a host's resources; zero means not given.
type Resources struct {
	CPUs      float64 `json:"cpus,omitempty"`
	MemoryMiB int64   `json:"memory_mib,omitempty"`
}

// Or returns the resources with zero amounts taken from defaults.
func (r Resources) Or(defaults Resources) Resources {
	return Resources{CPUs: cmp.Or(r.CPUs, defaults.CPUs), MemoryMiB: cmp.Or(r.MemoryMiB, defaults.MemoryMiB)}
}

// Strategy is how a role's members are distributed over the hosts.
type Strategy string

// The placement strategies.
const (
	Spread     Strategy = "spread"
	Pack       Strategy = "pack"
	OnePerHost Strategy = "one_per_host"
)

// Strategies lists the valid values.
var Strategies = []Strategy{Spread, Pack, OnePerHost}

// Placement constrains and orders the hosts for a role's members.
type Placement struct {
	// Strategy defaults to Spread.
	Strategy Strategy `json:"strategy,omitempty"`
	// SpreadBy is a label over whose values members are spread evenly, before Strategy applies; empty means none.
	SpreadBy string `json:"spread_by,omitempty"`
	// Labels must all be on the host with the same values.
	Labels map[string]string `json:"labels,omitempty"`
	// Hosts are the only allowed hosts; empty means any.
	Hosts []string `json:"hosts,omitempty"`
}

// Condition says when a member that ended is restarted.
type Condition string

// The conditions of a restart.
const (
	RestartNever     Condition = "never"
	RestartOnFailure Condition = "on_failure"
	RestartAlways    Condition = "always"
	// RestartByGroup is only used with engines: the group as a whole decides whether a member is restarted.
	RestartByGroup Condition = "by_group"
)

// Conditions lists the valid values.
var Conditions = []Condition{RestartNever, RestartOnFailure, RestartAlways}

// OnScale says what a change of a role's count does to the other members of its group, including those of the role
// itself.
type OnScale string

// What a change of a count can do.
const (
	// OnScaleRestart restarts all members that know the others' addresses, so that they learn the new ones. Members of
	// interchangeable roles are not among those addresses.
	OnScaleRestart OnScale = "restart"
	// OnScaleNone keeps them running with the addresses that they know.
	OnScaleNone OnScale = "none"
)

// OnScales lists the valid values.
var OnScales = []OnScale{OnScaleRestart, OnScaleNone}

// Restart is a role's restart rule as the user wrote it; see [Role.RestartRule].
type Restart struct {
	Condition   Condition `json:"condition,omitempty"`
	MaxAttempts *int      `json:"max_attempts,omitempty"`
	Delay       *Duration `json:"delay,omitempty"`
}

// Defaults for what a role omits.
const (
	// DefaultMaxAttempts limits restarts on failure, like the back-off limit of a Kubernetes Job.
	DefaultMaxAttempts  = 6
	DefaultRestartDelay = Duration(time.Second)
	// DefaultGracePeriod is Docker's default between the stop signal and the kill.
	DefaultGracePeriod = Duration(10 * time.Second)
)

// RestartScope says who restarts when a member fails in a way that is retried.
type RestartScope string

// The scopes of a restart.
const (
	// ScopeMember restarts only the failed member.
	ScopeMember RestartScope = "member"
	// ScopeGroup restarts all members, for synchronous training.
	ScopeGroup RestartScope = "group"
)

// RestartScopes lists the valid values.
var RestartScopes = []RestartScope{ScopeMember, ScopeGroup}

// WaitFor says which phase ends an apply.
type WaitFor string

// The phases that an apply can wait for.
const (
	WaitRunning   WaitFor = "running"
	WaitCompleted WaitFor = "completed"
)

// WaitFors lists the valid values.
var WaitFors = []WaitFor{WaitRunning, WaitCompleted}

// When says which members must have completed for the group to be completed.
type When string

// The completion rules.
const (
	WhenChief When = "chief"
	WhenAll   When = "all"
	WhenAny   When = "any"
	WhenNever When = "never"
)

// Whens lists the valid values.
var Whens = []When{WhenChief, WhenAll, WhenAny, WhenNever}

// Completion is a group's completion rule as the user wrote it. Package topology fills in the framework's defaults, see
// [CompletionRule].
type Completion struct {
	When     When      `json:"when,omitempty"`
	Roles    []string  `json:"roles,omitempty"`
	Deadline *Duration `json:"deadline,omitempty"`
	StopRest *bool     `json:"stop_rest,omitempty"`
}

// RoleNames returns the names of the group's roles, sorted.
func (g Group) RoleNames() []string {
	return slices.Sorted(maps.Keys(g.Roles))
}

// Compact returns g without the empty lists that mean the same as none.
func (g Group) Compact() Group {
	g.Template = g.Template.Compact(Template{})
	g.Roles = maps.Clone(g.Roles)
	for name, r := range g.Roles {
		r.Template = r.Compact(g.Template)
		g.Roles[name] = r
	}
	return g
}

// Equal reports whether two specifications mean the same document.
func (g Group) Equal(other Group) bool {
	a, errA := json.Marshal(g.Compact())
	b, errB := json.Marshal(other.Compact())
	return errA == nil && errB == nil && bytes.Equal(a, b)
}

// EffectiveTemplate returns what the members of a role run: the role's template over the group's.
func (g Group) EffectiveTemplate(role string) Template {
	return g.Roles[role].Over(g.Template)
}

// PulledImages returns the images that hosts may pull for members of the group, sorted. Without roles, it is the image
// of the group's own template.
func (g Group) PulledImages() []string {
	templates := []Template{g.Template}
	if len(g.Roles) > 0 {
		templates = nil
	}
	for role := range g.Roles {
		templates = append(templates, g.EffectiveTemplate(role))
	}
	images := map[string]bool{}
	for _, template := range templates {
		if template.Image != "" && (template.Container == nil || template.Container.PullPolicy != PullNever) {
			images[template.Image] = true
		}
	}
	return slices.Sorted(maps.Keys(images))
}

// RestartRule returns the role's restart rule with the defaults filled in: on failure, 6 attempts, after 1 s.
// MaxAttempts is 0 if restarts are not limited.
func (r Role) RestartRule() RestartRule {
	rule := RestartRule{Condition: r.Restart.Condition, Delay: DefaultRestartDelay, Final: DefaultFinalExitCodes}
	if rule.Condition == "" {
		rule.Condition = RestartOnFailure
	}
	if rule.Condition == RestartOnFailure {
		rule.MaxAttempts = DefaultMaxAttempts
	}
	if r.Restart.MaxAttempts != nil {
		rule.MaxAttempts = *r.Restart.MaxAttempts
	}
	if r.Restart.Delay != nil {
		rule.Delay = *r.Restart.Delay
	}
	if r.ExitCodes != nil {
		rule.Final = r.ExitCodes.Final
	}
	return rule
}

// Grace returns how long a member of the role may take to end after the stop signal.
func (r Role) Grace() Duration {
	if r.GracePeriod != nil {
		return *r.GracePeriod
	}
	return DefaultGracePeriod
}
