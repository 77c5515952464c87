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
	// SchedulingPinned: Trainyard does. The host is part of a member's specification, and nothing else moves the
	// member.
	SchedulingPinned Scheduling = "pinned"
	// SchedulingEngine: the engine does, and may move members. They have no host of their own, and share one
	// specification.
	SchedulingEngine Scheduling = "engine"
)

// Member is one running instance of a role, as the topology lays it out and placement completes it.
type Member struct {
	Name  string
	Role  string
	Index int
	// Scheduling is who chooses its host; empty before placement.
	Scheduling Scheduling
	// Host is the name of the host; empty before placement, and where the engine chooses it.
	Host string
	// Address is where other members reach it, "host:port"; empty before placement.
	Address string
	// Port is the port it listens on; 0 before placement.
	Port int
	// GPUs are the devices that it has for itself, or shares; empty for none.
	GPUs DeviceSet
}

// Shared reports whether the member has one specification with all others of its role.
func (m Member) Shared() bool { return m.Scheduling == SchedulingEngine }

// Place completes the member with what it was assigned, on a host with this address. Where the engine chooses the host,
// what it was assigned only says that there is room.
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

// Place says where a member is, as one text: its host, and its GPUs after a space, where it has some.
func (a Assignment) Place() string { return strings.TrimSuffix(a.Host+" "+string(a.GPUs), " ") }

// ParsePlace reads what [Assignment.Place] says. The port is not in it.
func ParsePlace(text string) Assignment {
	host, gpus, _ := strings.Cut(text, " ")
	return Assignment{Host: host, GPUs: DeviceSet(gpus)}
}

// File is a small file that a member needs to find, such as MPI's hostfile.
type File struct {
	Name    string `json:"name"`
	Content string `json:"content"`
}

// MemberSpec is all that an engine needs to run a member: nothing in it is left to be looked up.
type MemberSpec struct {
	Cluster string `json:"cluster"`
	Group   string `json:"group"`
	Role    string `json:"role"`
	Index   int    `json:"index"`
	Name    string `json:"name"`
	// Scheduling is who chooses the host; Host is empty where the engine does.
	Scheduling Scheduling `json:"scheduling,omitempty"`
	Host       string     `json:"host"`
	Address    string     `json:"address"`
	// Shared says that all members of the role have this specification, but for Index and Name.
	Shared bool `json:"shared,omitempty"`
	// Hash identifies the specification that this was rendered from. Equal hashes need no restart.
	Hash string `json:"hash"`
	// Run is the revision of the group's document under which the member was last (re)started.
	Run int `json:"run"`

	Image string `json:"image,omitempty"`
	// Command takes the place of an image's entrypoint, and Args that of its arguments.
	Command    []string          `json:"command,omitempty"`
	Args       []string          `json:"args,omitempty"`
	Env        map[string]string `json:"env,omitempty"`
	WorkingDir string            `json:"working_dir,omitempty"`
	Mounts     []Mount           `json:"mounts,omitempty"`
	Files      []File            `json:"files,omitempty"`
	// Kept is a folder that outlives the member, and that its next instance finds again: an absolute path as the member
	// sees it. It is empty where there is none, as for members that share their specification.
	Kept string `json:"kept,omitempty"`
	// Resources have limits that are never left to the requests.
	Resources ResourceRequirements `json:"resources,omitzero"`
	// InPlace has an instance that runs already have the limits, too, but for less memory, as far as its agent can
	// change them.
	InPlace     bool        `json:"in_place,omitempty"`
	Restart     RestartRule `json:"restart"`
	GracePeriod Duration    `json:"grace_period"`
	Container   Container   `json:"container,omitzero"`
	// Placement constrains the hosts of an interchangeable member, for engines that choose them.
	Placement Placement `json:"placement,omitzero"`
	// Update says how changes roll through the members of an interchangeable role, for engines that choose their hosts.
	Update Update `json:"update,omitzero"`
	// Interchangeable members have no identity: those of one role and group have the same specification, but for
	// Index, Name, Host and Address.
	Interchangeable bool `json:"interchangeable,omitempty"`
	// Secrets are the contents of secrets that are at hand: none but those of the apply that brings them. They are
	// never stored.
	Secrets SecretValues `json:"-"`
	// Deviations say in words what no other field can of a member that somebody else changed, such as
	// "its network was taken away". What Trainyard writes has none.
	Deviations []string `json:"deviations,omitempty"`
}

// Argv returns the command followed by the args: what is run where there is no image.
func (s MemberSpec) Argv() []string { return slices.Concat(s.Command, s.Args) }

// UsesGPUs reports whether the member is shown NVIDIA's GPUs, by the variable that names them for containers.
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
	// StatePending is staged, or about to be started.
	StatePending State = "pending"
	StateRunning State = "running"
	// StateRestarting has ended and waits for its next start.
	StateRestarting State = "restarting"
	// StateCompleted has ended with exit code 0 and stays ended.
	StateCompleted State = "completed"
	// StateFailed has ended, and its restart rule gives no further attempt.
	StateFailed State = "failed"
	// StateStopped was ended on request, such as the parameter servers of a completed group.
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
	// Instance is what the agent of its host knows the member by while it runs: the ID of its container, or the mark of
	// its processes. It is empty where nothing of it runs.
	Instance string
	// Restarts counts the starts after the first, in this run.
	Restarts int
	// ExitCode is that of the last instance that ended; nil where none has.
	ExitCode *int
	// RunStartedAt is the start of the first instance in this run; nil where there was none.
	RunStartedAt *time.Time
	// StartedAt and FinishedAt are those of the last instance; nil where it has not.
	StartedAt  *time.Time
	FinishedAt *time.Time
	// LastError says in words why the last instance failed or could not be started.
	LastError string
	// Unstarted reports that the last instance could not be started, for example because its image lacks the command.
	// It may be tried again.
	Unstarted bool
	// OutOfMemory is when an instance ran out of the memory that it was allowed, in this run, the last time; nil where
	// none is known to have.
	OutOfMemory *OutOfMemory
	// HostTrouble says in words why its host is not as it should be, such as "host gpu1 is down"; empty where it is.
	// It is said of failed members, too, which may be about to be restarted with their group.
	HostTrouble string
	// GPUTrouble says in words which of its GPUs can't be used, and why, such as "GPU-4fa6a2a8-… of host gpu1 (fallen
	// off the bus (XID 79))"; empty where all can. No engine says it: the documents of the GPU pools do.
	GPUTrouble string
	// Live is what the member is found to be, where somebody else changed it since it was put in force: a
	// specification that Trainyard did not write. It is nil where nobody did.
	Live *MemberSpec
	// Replicas is the number of instances that somebody else told the engine to run of this one member; nil where it
	// is the one that it should be.
	Replicas *int
	// StopReason is the reason given with the request to stop, where the state is StateStopped.
	StopReason StopReason
}

// OutOfMemory is the end of an instance that ran out of the memory that it was allowed.
type OutOfMemory struct {
	At       time.Time `json:"at"`
	LimitMiB int64     `json:"limit_mib"`
}

// String names the observed member and its state.
func (o Observed) String() string { return fmt.Sprintf("%s (%s)", o.Name, o.State) }

// StopReason says why members were stopped.
type StopReason string

// The reasons for which members are stopped.
const (
	// StopCompleted: the group is completed, and the rest of it is no longer needed.
	StopCompleted StopReason = "completed"
	// StopDeadline: the group was not completed within its deadline.
	StopDeadline StopReason = "deadline"
	// StopFailed: another member failed for good, and the group can't complete any more.
	StopFailed StopReason = "failed"
)
