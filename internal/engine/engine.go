// Package engine is the interface between Trainyard and what runs members on hosts.
//
// An engine keeps two things for a cluster: its store, which holds what Terraform and the controller decided, and its
// members, which are what runs. It makes no decisions: package reconcile compares the two and says what to change.
// Every call is idempotent, and may be repeated after a crash at any point.
//
// An [Engine] consists of several interfaces, one for each kind of caller: use the narrowest that is enough. What only
// some engines can do is a separate interface, which [Images], [Files] and [RequestJoinToken] check for. [Intercept]
// sees every call of all of them.
package engine

import (
	"cmp"
	"context"
	"time"

	"github.com/trainyard/terraform-provider-trainyard/internal/bounded"
	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
)

// Engine runs the members of one cluster.
type Engine interface {
	Store
	Locker
	Runner
	Hosts
	Telemetry
	Daemons
	Folders

	// Traits returns the properties of this engine. It does no I/O.
	Traits() Traits
	// Snapshot returns a view of this engine for the many reads of a plan, in which a read may be answered from an
	// earlier one. Writes go to the engine itself.
	Snapshot() Engine
}

// Locker provides mutual exclusion by named locks.
type Locker interface {
	// Lock takes the named lock for holder, or fails at once with a [*LockedError]. The lock ends when it is released
	// or its holder dies.
	Lock(ctx context.Context, name string, holder Holder) (release func() error, err error)
	// Hold takes a lock as Lock does, for a holder that acts as long as it has the lock. The returned context ends with
	// ctx, on release, and when the lock is lost: no later than anybody else can take it, and with the reason as its
	// cause. A lost lock is free to take even though its holder is still alive.
	Hold(ctx context.Context, name string, holder Holder) (held context.Context, release func() error, err error)
}

// Hosts manages the machines of the cluster.
type Hosts interface {
	// Recognise returns an [*ElsewhereError] if the engine's endpoint leads to hosts other than those of the cluster
	// with this ID, which is the one in the cluster's specification. If the cluster's document is there, reading it is
	// enough. An engine whose endpoint can't change returns nil.
	Recognise(ctx context.Context, id string) error
	// Complete fills in what a cluster's specification leaves to the engine: hosts, addresses, capacities. It also
	// returns the problems that keep the hosts from becoming that cluster.
	Complete(ctx context.Context, cluster domain.Cluster) (domain.Cluster, domain.Problems, error)
	// Form turns the hosts into the cluster as completed, and returns it with what became known in the process. It
	// removes from the cluster only what it added itself, and leaves alone what matches the specification.
	Form(ctx context.Context, cluster domain.Cluster) (domain.Cluster, error)
	// Survey returns a stored cluster as it is now: drifted attributes have their live values.
	Survey(ctx context.Context, cluster domain.Cluster) (domain.Cluster, error)
	// Inventory returns what the hosts of a cluster offer right now. The cluster need not be stored yet.
	Inventory(ctx context.Context, cluster domain.Cluster) (Inventory, error)
	// Preflight returns what would keep specifications from running on their hosts, as far as that shows without
	// starting them: a command not found, a feature that this engine lacks. One specification per role and host is
	// enough.
	Preflight(ctx context.Context, specs []domain.MemberSpec) (domain.Problems, error)
	// Dissolve ends what runs in the cluster, takes out the hosts that Form added, and removes everything stored for
	// the cluster. It does nothing if there is no cluster.
	Dissolve(ctx context.Context) error
}

// Runner runs members.
type Runner interface {
	// Observe returns the members of a group, or of all groups if group is empty, in a stable order. Its number of
	// requests to the engine does not depend on the number of members.
	Observe(ctx context.Context, group string) ([]domain.Observed, error)
	// Specified returns the members as Observe does, but may omit runtime data such as their states, which may take
	// longer to get.
	Specified(ctx context.Context, group string) ([]domain.Observed, error)
	// Stage hands over specifications without starting anything: running members are unchanged until [Runner.Start].
	Stage(ctx context.Context, specs []domain.MemberSpec) error
	// Start starts every staged member of a group whose Run is run. If it fails, some may have been started: once the
	// members are staged again, it starts the others. What was staged for an earlier run and never started is dropped.
	// A member that runs under an older specification is ended first, within its grace period. One that already runs
	// with the staged run and hash keeps running: if somebody else changed it, or its Placement differs, it is
	// corrected, and restarted only if that requires it. Start does not wait for the members to run.
	Start(ctx context.Context, group string, run int) error
	// Stop requests that members, by name, end within their grace periods and are not restarted in the given run, the
	// one in which they were seen. A member that has another run by now was started again in the meantime and keeps
	// running. Exit codes and logs are kept. Stop does not wait.
	Stop(ctx context.Context, runs map[string]int, reason domain.StopReason) error
	// Remove requests that the members end within their grace periods and are removed with their logs. It does not
	// wait: they are gone once Observe no longer returns them. It needs no running controller.
	Remove(ctx context.Context, names []string) error
	// Prune removes what members of a group no longer need, such as files and secrets. What spec declares is kept; a
	// nil spec means that the group ends, and nothing is kept.
	Prune(ctx context.Context, group string, spec *domain.Group) error
	// Watch returns a channel that receives a value after members or watched items of the cluster changed. It is closed
	// when ctx is done or the stream is lost; changes in quick succession may be reported as one.
	Watch(ctx context.Context) (<-chan struct{}, error)
}

// Telemetry reads measurements of members and hosts, and members' logs.
type Telemetry interface {
	// Usage returns what hosts, GPUs and members use, over a window of time that ends now ([ShortestWindow] to
	// [LongestWindow]). Anything measured for less than the window is reported from its first sample.
	Usage(ctx context.Context, window time.Duration) (Usage, error)
	// GPUs returns the GPUs of the cluster's hosts by host, with the members that use them. A host whose GPUs are
	// unknown gives the reason.
	GPUs(ctx context.Context) (map[string]domain.HostGPUs, error)
	// Logs returns the end of a member's log, or [ErrNotFound] for a missing member.
	Logs(ctx context.Context, member string, options LogOptions) ([]string, error)
	// Follow returns what a member wrote after a mark, and the mark to continue from. A missing member is
	// [ErrNotFound].
	Follow(ctx context.Context, member string, from LogPlace) (LogPart, error)
}

// Daemons manages the resident processes of the cluster: its controller, which acts between two applies, and its
// agents.
type Daemons interface {
	// StartController starts the controller and the agents of this build, without waiting for them. Those that already
	// run are left alone.
	StartController(ctx context.Context) error
	// Residents returns the states of the controller and the agents, in a number of requests that doesn't depend on the
	// number of hosts. If the cluster isn't stored, the error is [ErrNotFound].
	Residents(ctx context.Context) (domain.Residents, error)
	// StopController ends the controller and waits until it has ended.
	StopController(ctx context.Context) error
	// Guard maintains what the engine itself needs to run members, until ctx is done. The controller calls it.
	Guard(ctx context.Context) error
}

// Traits are the properties of an engine.
type Traits struct {
	// Name is the engine's name in a configuration.
	Name string
	// MemberAddress returns the name at which others reach a member, which then has its ports to itself. If it is nil,
	// members are reached at their host's address, and those on hosts with the same address share its ports.
	MemberAddress func(member string) string
	// Schedules reports whether the engine chooses the hosts of interchangeable members: [domain.SchedulingEngine].
	Schedules bool
	// StateDir is the folder of this machine in which the engine keeps its clusters; empty if they are at an endpoint.
	StateDir string
	// ImportFrom is the prefix of import IDs for what is in the cluster, if the cluster's name alone is not enough to
	// find it: "ssh://ops@gpu1/".
	ImportFrom string
	// Supports lists the features that only some engines have.
	Supports Features
	// Contained reports whether the controller runs in a container without any programs but its own, so that it can't
	// run the user's commands.
	Contained bool
	// Restarts reports whether the engine restarts failed members even while no controller runs. Those of
	// [domain.RestartByGroup] it leaves to the controller.
	Restarts bool
	// HandsOver reports whether a specification with the same run and hash is updated without restarting its member,
	// which sees it from its next start.
	HandsOver bool
	// NoResidents is the reason why an apply by this program can't start the cluster's controller and agents, and what
	// to do; empty if it can.
	NoResidents string
	// NoMetricsPort is the reason why the port at which agents serve Prometheus on their hosts can't be set, and what
	// to do; empty if it can.
	NoMetricsPort string
	// MaxItem is the maximum size of a stored item in bytes; 0 for no limit.
	MaxItem int
	// FilesDir returns the folder in which a member without a container finds the files of its specification; nil if
	// all members have a container. Call [Traits.FilesOf] instead.
	FilesDir func(member string) string
	// WorkDir returns the member's own folder, which outlives the member; nil if members only have
	// [domain.MemberSpec.Kept].
	WorkDir func(member string) string
	// FolderPlace describes where to find a folder that a member left behind, so that a user can get to it from its
	// host.
	FolderPlace func(folder domain.KeptFolder) string
}

// Inventory is what the hosts of a cluster offer.
type Inventory struct {
	// Hosts are the cluster's hosts by name, as in its document.
	Hosts map[string]domain.Host
	// Closed maps each host that takes no new members to the reason, such as "host gpu1 is down", and Lost each host
	// whose members can't stay. Lost hosts are in Closed too.
	Closed, Lost map[string]string
	// Reserved is what others than the cluster's groups have reserved, by host.
	Reserved map[string]domain.Resources
	// Addresses is the number of members, across all groups, that the cluster's network has addresses for; 0 for no
	// limit.
	Addresses int
	// Taken maps each name that members can't have to its owner, such as "a service of cluster lab".
	Taken map[string]string
	// BusyPorts are the ports in use, by the host's address. They include the ports of running members, and those
	// reserved for Prometheus.
	BusyPorts map[string][]int
}

// LogOptions select a part of a log.
type LogOptions struct {
	// Tail is the number of lines from the end; 0 for all that are kept.
	Tail int
	// Since omits what was written earlier, to the accuracy of about a second; the zero time omits nothing.
	Since time.Time
	// Most is the maximum number of bytes of all lines together; 0 for [bounded.Log]. More is a [bounded.Error].
	Most int64
}

// Lines returns the collector for the lines.
func (o LogOptions) Lines() *bounded.Lines {
	return &bounded.Lines{Tail: o.Tail, Most: cmp.Or(o.Most, bounded.Log)}
}

// Holder identifies who holds a lock.
type Holder struct {
	// Who is the user and machine, and Process the process ID there.
	Who     string `json:"who"`
	Process int    `json:"process"`
	// Operation describes the current operation, such as "apply of group mnist".
	Operation string    `json:"operation"`
	Since     time.Time `json:"since"`
	// Controller is set for the cluster's own controller, which holds locks only briefly.
	Controller bool `json:"controller,omitempty"`
	// Patience is how long the controller may keep the lock if it needs longer than usual because members have to end;
	// otherwise 0.
	Patience time.Duration `json:"patience,omitempty"`
	// Version is the version of the holder's program, and StartTime distinguishes the process from a later one with the
	// same ID, where that matters.
	Version   string `json:"version,omitempty"`
	StartTime uint64 `json:"start_time,omitempty"`
}

// Same reports whether the lock is held for the same operation in both observations.
func (h Holder) Same(other Holder) bool {
	return h.Who == other.Who && h.Process == other.Process && h.Since.Equal(other.Since)
}
