package domain

import (
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Scheduling is who chooses the hosts of members.
type Scheduling string

// The kinds of scheduling.
const (
	// SchedulingPinned means that Trainyard chooses. The host is part of a member's specification, and nothing else
	// moves the member.
	SchedulingPinned Scheduling = "pinned"
	// SchedulingEngine means that the engine chooses, and may move members. They have no host of their own and share
	// one specification.
	SchedulingEngine Scheduling = "engine"
)

// Member is one running instance of a role, as laid out by the topology and completed by placement.
type Member struct {
	Name  string
	Role  string
	Index int
	// Scheduling is who chooses its host; empty before placement.
	Scheduling Scheduling
	// Host is the name of the host; empty before placement, and if the engine chooses it.
	Host string
	// Address is where other members reach it, "host:port"; empty before placement.
	Address string
	// Port is the port that it listens on; 0 before placement.
	Port int
	// GPUs are its devices, exclusive or shared; empty means none.
	GPUs DeviceSet
}

// Shared reports whether the member shares one specification with all others of its role.
func (m Member) Shared() bool { return m.Scheduling == SchedulingEngine }

// Place completes the member with its assignment, on a host with this address. If the engine chooses the host, the
// assignment only shows that there is room.
func (m *Member) Place(by Scheduling, assigned Assignment, address string) {
	m.Scheduling, m.Host, m.Port, m.GPUs = by, assigned.Host, assigned.Port, assigned.GPUs
	if m.Shared() {
		m.Host = ""
	}
	m.Address = net.JoinHostPort(address, strconv.Itoa(assigned.Port))
}

// Assignment is where a member was placed.
type Assignment struct {
	Host string    `json:"host"`
	Port int       `json:"port"`
	GPUs DeviceSet `json:"gpus,omitempty"`
}

// Place returns the host of a member and its GPUs, if any, separated by a space.
func (a Assignment) Place() string { return strings.TrimSuffix(a.Host+" "+string(a.GPUs), " ") }

// ParsePlace parses the result of [Assignment.Place]. It has no port.
func ParsePlace(text string) Assignment {
	host, gpus, _ := strings.Cut(text, " ")
	return Assignment{Host: host, GPUs: DeviceSet(gpus)}
}

// File is a small file that a member needs, such as MPI's hostfile.
type File struct {
	Name    string `json:"name"`
	Content string `json:"content"`
}

// MemberSpec is everything that an engine needs to run a member. It never has to look anything up.
type MemberSpec struct {
	Cluster string `json:"cluster"`
	Group   string `json:"group"`
	Role    string `json:"role"`
	Index   int    `json:"index"`
	Name    string `json:"name"`
	// Scheduling is who chooses the host; Host is empty if the engine does.
	Scheduling Scheduling `json:"scheduling,omitempty"`
	Host       string     `json:"host"`
	Address    string     `json:"address"`
	// Shared means that all members of the role have this specification, except for Index and Name.
	Shared bool `json:"shared,omitempty"`
	// Hash identifies the specification that this was rendered from. Equal hashes need no restart.
	Hash string `json:"hash"`
	// Run is the run in which the member was last (re)started, see [GroupDocument.Run].
	Run int `json:"run"`

	Image string `json:"image,omitempty"`
	// Command replaces an image's entrypoint, and Args its arguments.
	Command    []string          `json:"command,omitempty"`
	Args       []string          `json:"args,omitempty"`
	Env        map[string]string `json:"env,omitempty"`
	WorkingDir string            `json:"working_dir,omitempty"`
	Mounts     []Mount           `json:"mounts,omitempty"`
	Files      []File            `json:"files,omitempty"`
	// Kept is a folder that outlives the member and is there for its next instance, as an absolute path that the member
	// sees. It is empty if there is none, as for members that share their specification.
	Kept string `json:"kept,omitempty"`
	// Resources always have limits; none defaults to its request.
	Resources ResourceRequirements `json:"resources,omitzero"`
	// InPlace also applies the limits to a running instance as far as its agent can change them, but never lowers its
	// memory limit.
	InPlace     bool        `json:"in_place,omitempty"`
	Restart     RestartRule `json:"restart"`
	GracePeriod Duration    `json:"grace_period"`
	Container   Container   `json:"container,omitzero"`
	// Placement constrains the hosts of an interchangeable member, for engines that choose them.
	Placement Placement `json:"placement,omitzero"`
	// Update says how changes are rolled out to the members of an interchangeable role, for engines that choose their
	// hosts.
	Update Update `json:"update,omitzero"`
	// Interchangeable members have no identity: those of one role and group have the same specification, except for
	// Index, Name, Host and Address.
	Interchangeable bool `json:"interchangeable,omitempty"`
	// Secrets are the available contents of secrets: only the apply that brings them has any. They are never stored.
	Secrets SecretValues `json:"-"`
	// Deviations describe changes by others that no other field can express, such as "its network was removed". What
	// Trainyard writes has none.
	Deviations []string `json:"deviations,omitempty"`
}

// Argv returns the command followed by the args, which is what runs without an image.
func (s MemberSpec) Argv() []string { return slices.Concat(s.Command, s.Args) }

// UsesGPUs reports whether the member gets NVIDIA GPUs through the variable that names them for containers.
func (s MemberSpec) UsesGPUs() bool {
	switch s.Env["NVIDIA_VISIBLE_DEVICES"] {
	case "", "none", "void":
		return false
	}
	return true
}

// State is where a member is in its life.
type State string

// The states of a member.
const (
	// StatePending: staged, or about to be started.
	StatePending State = "pending"
	StateRunning State = "running"
	// StateRestarting: ended, and waits for its next start.
	StateRestarting State = "restarting"
	// StateCompleted: ended with exit code 0, and stays ended.
	StateCompleted State = "completed"
	// StateFailed: ended, and its restart rule allows no further attempt.
	StateFailed State = "failed"
	// StateStopped: ended on request, such as the parameter servers of a completed group.
	StateStopped State = "stopped"
)

// Ended reports whether a member in this state will not run again by itself.
func (s State) Ended() bool {
	return s == StateCompleted || s == StateFailed || s == StateStopped
}

// Observed is a member as an engine found it.
type Observed struct {
	Name    string
	Group   string
	Role    string
	Index   int
	Host    string
	Address string
	// Hash and Run are those of the specification that the member runs, or is about to run.
	Hash string
	Run  int

	State State
	// Instance is the ID by which the agent of its host knows the running member: the ID of its container, or the mark
	// of its processes. It is empty if nothing of it runs.
	Instance string
	// Restarts counts the starts after the first, in this run.
	Restarts int
	// ExitCode is that of the last instance that ended; nil if none has.
	ExitCode *int
	// RunStartedAt is the start of the first instance in this run; nil if there was none.
	RunStartedAt *time.Time
	// StartedAt and FinishedAt are those of the last instance; nil if it has not started or finished.
	StartedAt  *time.Time
	FinishedAt *time.Time
	// LastError says why the last instance failed or could not be started.
	LastError string
	// Unstarted reports whether the last instance could not be started, for example because its image lacks the
	// command. It may be tried again.
	Unstarted bool
	// OutOfMemory is the last time that an instance exceeded its memory limit in this run; nil if none is known to
	// have.
	OutOfMemory *OutOfMemory
	// HostTrouble says what is wrong with its host, such as "host gpu1 is down"; empty if nothing is. It is also set
	// for failed members, which may be about to restart with their group.
	HostTrouble string
	// GPUTrouble says which of its GPUs can't be used and why, such as "GPU-4fa6a2a8-… of host gpu1 (fallen off the bus
	// (XID 79))"; empty if all can. It comes from the documents of the GPU pools, not from an engine.
	GPUTrouble string
	// Live is the member's actual specification if somebody other than Trainyard changed it since it was put in force;
	// nil if nobody did.
	Live *MemberSpec
	// Replicas is the number of instances of this one member that somebody else set on the engine; nil if it is 1, as
	// it should be.
	Replicas *int
	// StopReason is the reason given with the request to stop, if the state is StateStopped.
	StopReason StopReason
}

// ByEnd orders members by when they ended, unknown times last. Of several that failed, the first one is more likely to
// be the cause.
func ByEnd(a, b Observed) int {
	switch {
	case a.FinishedAt != nil && b.FinishedAt != nil:
		return a.FinishedAt.Compare(*b.FinishedAt)
	case a.FinishedAt != nil:
		return -1
	case b.FinishedAt != nil:
		return 1
	}
	return 0
}

// OutOfMemory is the end of an instance that exceeded its memory limit.
type OutOfMemory struct {
	At       time.Time `json:"at"`
	LimitMiB int64     `json:"limit_mib"`
}

// String returns the name of the member and its state.
func (o Observed) String() string { return fmt.Sprintf("%s (%s)", o.Name, o.State) }

// StopReason says why members were stopped.
type StopReason string

// The reasons for stopping members.
const (
	// StopCompleted: the group is completed, and the rest of it is no longer needed.
	StopCompleted StopReason = "completed"
	// StopDeadline: the group was not completed within its deadline.
	StopDeadline StopReason = "deadline"
	// StopFailed: another member failed for good, and the group can't complete any more.
	StopFailed StopReason = "failed"
)
