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

	// Traits returns what is particular to this engine. It does no I/O.
	Traits() Traits
	// Snapshot returns this engine as it is at one moment, for the many reads of a plan: what was read once may
	// be returned again. Its writes are those of the engine.
	Snapshot() Engine
}

// Locker has one caller at a time act on something.
type Locker interface {
	// Lock takes the named lock for the holder, or fails with a [*LockedError] at once. The lock ends with
	// the release or with the death of its holder.
	Lock(ctx context.Context, name string, holder Holder) (release func() error, err error)
	// Hold takes a lock as Lock does, for a holder who acts for as long as he has it. The context that it returns ends
	// with ctx, with the release, and when the lock is lost: no later than anybody else can have it, with the reason as
	// its cause. A lock that was lost is kept from nobody, though its holder lives on.
	Hold(ctx context.Context, name string, holder Holder) (held context.Context, release func() error, err error)
}

// Hosts are the machines of the cluster.
type Hosts interface {
	// Recognise returns an [*ElsewhereError] where the engine is led to other hosts than those of the cluster with an
	// ID, as in the cluster's specification. Where the cluster's document is there, that takes no more than to read it.
	// An engine that can't be led elsewhere returns nil.
	Recognise(ctx context.Context, id string) error
	// Complete fills in what a cluster's specification leaves to the engine: hosts, addresses, capacities. It returns
	// what keeps the hosts from becoming that cluster, too.
	Complete(ctx context.Context, cluster domain.Cluster) (domain.Cluster, domain.Problems, error)
	// Form makes the hosts be the cluster as completed, and returns it with what became known thereby. It takes
	// nothing out of the cluster but what it made part of it. What is as specified is left alone.
	Form(ctx context.Context, cluster domain.Cluster) (domain.Cluster, error)
	// Survey returns a stored cluster as it is found: what drifted has its live value.
	Survey(ctx context.Context, cluster domain.Cluster) (domain.Cluster, error)
	// Inventory returns what the hosts of a cluster offer at this moment. The cluster need not be stored yet.
	Inventory(ctx context.Context, cluster domain.Cluster) (Inventory, error)
	// Preflight returns what would keep specifications from running on their hosts, as far as can be told without
	// starting them: a command not found, a feature this engine lacks. One specification a role and host is enough.
	Preflight(ctx context.Context, specs []domain.MemberSpec) (domain.Problems, error)
	// Dissolve ends what runs in the cluster, takes the hosts out of it that Form made part of it, and removes all that
	// is stored of it. Without a cluster it does nothing.
	Dissolve(ctx context.Context) error
}

// Runner runs members.
type Runner interface {
	// Observe returns the members of a group, or of all groups where group is empty, in the order of their
	// names. Its number of requests to the engine does not depend on the number of members.
	Observe(ctx context.Context, group string) ([]domain.Observed, error)
	// Specified returns the members as Observe does, but may leave out what comes of running, such as their states:
	// that may take longer to find out.
	Specified(ctx context.Context, group string) ([]domain.Observed, error)
	// Stage hands specifications over without starting anything: a member that runs goes on as it is until
	// [Runner.Start].
	Stage(ctx context.Context, specs []domain.MemberSpec) error
	// Start starts every staged member of a group whose Run is run. Where it fails, some may have been started: once
	// the members are staged again, it starts the others. What was staged for an earlier run and never started is
	// dropped. A member that runs under an older specification is ended first, within its grace period. One that has
	// the staged run and hash already goes on: where somebody else changed it, or its Placement is another, it is put
	// right, and restarts only where it has to for that. Start does not wait for the members to run.
	Start(ctx context.Context, group string, run int) error
	// Stop asks for members, by name, to be ended within their grace periods and not to be restarted in the run in
	// which they were seen. One that has another run by now was started anew meanwhile, and goes on. What they left
	// behind (exit code, logs) is kept. It does not wait.
	Stop(ctx context.Context, runs map[string]int, reason domain.StopReason) error
	// Remove asks for the members to be ended within their grace periods and to be forgotten, with their logs.
	// It does not wait: they are gone when Observe no longer returns them. No controller has to be there for it.
	Remove(ctx context.Context, names []string) error
	// Prune removes what members of a group needed and none of them needs any more, such as files and secrets. What the
	// specification declares is kept; without one the group ends, and nothing is.
	Prune(ctx context.Context, group string, spec *domain.Group) error
	// Watch returns a channel that receives something after members or watched items of the cluster changed, and is
	// closed when ctx is done or the stream is lost. Changes in quick succession may be reported as one.
	Watch(ctx context.Context) (<-chan struct{}, error)
}

// Telemetry is what is measured of members and hosts, and what members write.
type Telemetry interface {
	// Usage returns what hosts, GPUs and members use, over a window of time that ends now ([ShortestWindow] to
	// [LongestWindow]). Anything measured for less than the window is reported from its first sample.
	Usage(ctx context.Context, window time.Duration) (Usage, error)
	// GPUs returns the GPUs of the cluster's hosts by host, with the members that use them. A host of which they are
	// not known says why.
	GPUs(ctx context.Context) (map[string]domain.HostGPUs, error)
	// Logs returns the end of what a member wrote. A member that is not there is [ErrNotFound].
	Logs(ctx context.Context, member string, options LogOptions) ([]string, error)
	// Follow returns what a member wrote after a mark, and the mark to go on from. A member that is not there is
	// [ErrNotFound].
	Follow(ctx context.Context, member string, from LogPlace) (LogPart, error)
}

// Daemons are the resident processes of the cluster: its controller, which acts between two applies, and its agents.
type Daemons interface {
	// StartController orders the controller and the agents of this build, without waiting for them. Those that run are
	// left alone.
	StartController(ctx context.Context) error
	// Residents returns the states of the controller and the agents, in a number of requests that doesn't depend on the
	// number of hosts. For a cluster that isn't stored the error is [ErrNotFound].
	Residents(ctx context.Context) (domain.Residents, error)
	// StopController ends it and returns when it has ended.
	StopController(ctx context.Context) error
	// Guard keeps alive what the engine itself needs to run members, until ctx is done. The controller calls it.
	Guard(ctx context.Context) error
}

// Traits are what is particular to an engine.
type Traits struct {
	// Name is the engine's name in a configuration.
	Name string
	// MemberAddress tells how a member is reached by others: where it is nil, at its host's address, so that the
	// members on hosts of one address share its ports; otherwise at the name it returns, with ports of its own.
	MemberAddress func(member string) string
	// Schedules reports whether the engine chooses the hosts of interchangeable members: [domain.SchedulingEngine].
	Schedules bool
	// ImportFrom begins the import IDs of what is in the cluster, where that is not found by its name alone:
	// "ssh://ops@gpu1/".
	ImportFrom string
	// Supports are the features that only some engines have.
	Supports Features
	// Contained tells that the controller runs in a container that has no programs but its own: it can run nothing of
	// the user's.
	Contained bool
	// HandsOver tells that a specification of the same run and hash is put in force without restarting its member,
	// which has it from its next start on.
	HandsOver bool
	// NoResidents says why an apply by this program can't start the cluster's controller and agents, and what to do;
	// empty where it can.
	NoResidents string
	// NoMetricsPort says why agents can't be told at which port of their hosts they answer Prometheus, and what to do;
	// empty where they can.
	NoMetricsPort string
	// MaxItem is how many bytes a stored item may have; 0 sets no bound.
	MaxItem int
	// FilesDir returns the folder in which a member without a container finds the files of its specification; it is nil
	// where all members have one. Ask [Traits.FilesOf].
	FilesDir func(member string) string
	// WorkDir returns the folder of a member's own, which outlives it; it is nil where members have none but
	// [domain.MemberSpec.Kept].
	WorkDir func(member string) string
	// FolderPlace says where a folder is that a member left, in a way that leads to it from its host.
	FolderPlace func(folder domain.KeptFolder) string
}

// Inventory is what the hosts of a cluster offer.
type Inventory struct {
	// Hosts are the cluster's hosts by name, as in its document.
	Hosts map[string]domain.Host
	// Closed says of hosts that take no new members why, in words such as "host gpu1 is down", and Lost of those whose
	// members can't stay. What is lost is closed.
	Closed, Lost map[string]string
	// Reserved is what others than the cluster's groups have reserved, by host.
	Reserved map[string]domain.Resources
	// Addresses is the number of members, of all groups, that the cluster's network has addresses for; 0 sets no bound.
	Addresses int
	// Taken says of names that members can't have whose they are, in words such as "a service of cluster lab".
	Taken map[string]string
	// BusyPorts are the ports on which something listens, by the address of the host. They include the ports
	// of members that run, and those that are kept for Prometheus.
	BusyPorts map[string][]int
}

// LogOptions select a part of a log.
type LogOptions struct {
	// Tail is the number of lines from the end; 0 returns all that are kept.
	Tail int
	// Since leaves out what was written before, to the accuracy of about a second; the zero time keeps all.
	Since time.Time
	// Most is the number of bytes that the lines may have; 0 for [bounded.Log]. More are a [bounded.Error].
	Most int64
}

// Lines returns what collects the lines.
func (o LogOptions) Lines() *bounded.Lines {
	return &bounded.Lines{Tail: o.Tail, Most: cmp.Or(o.Most, bounded.Log)}
}

// Holder tells who holds a lock.
type Holder struct {
	// Who is the user and machine, and Process its id there.
	Who     string `json:"who"`
	Process int    `json:"process"`
	// Operation is what it does, such as "apply of group mnist".
	Operation string    `json:"operation"`
	Since     time.Time `json:"since"`
	// Controller is true for the cluster's own controller, whose locks are short.
	Controller bool `json:"controller,omitempty"`
	// Patience is how long it may take where the controller needs the lock for longer than usual, as members need to
	// end; 0 where not.
	Patience time.Duration `json:"patience,omitempty"`
	// Version is that of the holder's program, and StartTime tells the process from a later one with the same id, where
	// that matters.
	Version   string `json:"version,omitempty"`
	StartTime uint64 `json:"start_time,omitempty"`
}

// Same reports whether two looks found a lock held for the same operation.
func (h Holder) Same(other Holder) bool {
	return h.Who == other.Who && h.Process == other.Process && h.Since.Equal(other.Since)
}
