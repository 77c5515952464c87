// Package facts reads what a bare host is and has, with a single command over SSH, and reports what it lacks to join a
// cluster.
package facts

import (
	"context"
	_ "embed"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/sshclient"
)

// Facts are what a host reports about itself. What it does not report is zero.
type Facts struct {
	// Address is the address of the host, as [user@]host[:port].
	Address string

	// User is the login user, with this ID.
	User   string
	UserID int
	// Root means that commands can be run as root: by root itself, or with sudo. Refusal is the reason if not.
	Root    bool
	Refusal string

	Hostname  string
	MachineID string // of the installation; copies of a machine may share it
	BootID    string // of the kernel's start; containers on a machine share it
	// Machine is the architecture as uname -m reports it, Architecture Go's name for it, "" if Go has none.
	Machine, Architecture string
	Kernel                string // its release
	OS                    OS
	// Init is the name of the first process. Systemd is the installed version of systemd, 0 for none, and SystemdRuns
	// means that it is the host's init system.
	Init        string
	Systemd     int
	SystemdRuns bool
	// ControlGroups is the cgroup hierarchy, and Controllers the controllers available in it, sorted.
	ControlGroups ControlGroups
	Controllers   []string
	SELinux       bool     // enforcing
	Glibc         string   // its version; "" with another C library
	Loaders       []string // the files of the dynamic loaders, which start dynamically linked programs
	Python        string   // the version of python3
	Lacks         []string // the missing commands that we need

	Capacity domain.Capacity
	Home     Home
	// Programs are our installed programs.
	Programs []Program
	// Clusters are those with a state directory on the host.
	Clusters []string

	Ports     []uint16 // TCP ports in use, sorted
	Addresses []string // IP addresses without loopback and link-local ones, sorted
	HostKeys  []string // public keys of the SSH server, as lines of authorized_keys without a comment

	NVIDIA NVIDIA
	Docker Docker

	// Clock is the host's time when it answered, and Apart its minimum difference from this machine's: negative for a
	// host that is behind.
	Clock time.Time
	Apart time.Duration
}

// OS is a Linux distribution.
type OS struct {
	Name string   // with the version, for people
	IDs  []string // its own and those that it is like, such as rhel and fedora
}

// ControlGroups is a host's cgroup hierarchy.
type ControlGroups string

// The possible hierarchies.
const (
	ControlGroups1      ControlGroups = "1"
	ControlGroupsHybrid ControlGroups = "hybrid" // version 1, and 2 only for systemd
	ControlGroups2      ControlGroups = "2"
)

// Home is the folder for everything of ours, now or in the future.
type Home struct {
	// Folder is that, or the nearest existing folder above it, with links resolved.
	Folder string
	// FreeBytes are free there.
	FreeBytes int64
	// Writable means that the user who ran the commands can write there: root, if [Facts.Root].
	Writable bool
	// Mount is the mount point of the file system, and MountOptions its options.
	Mount        string
	MountOptions []string
}

// Program is a file that we installed, identified by the digest of its content.
type Program struct {
	Digest, Name string
	Bytes        int64
}

// NVIDIA is what a host has for NVIDIA's GPUs.
type NVIDIA struct {
	Driver  string // the version of the loaded driver; "" for none
	SMI     bool   // nvidia-smi exists
	Toolkit bool   // the container toolkit is installed
}

// Docker is the Docker Engine of a host.
type Docker struct {
	Socket  string // "" for none
	Version string // "" if it did not report one
	Silent  bool   // it was asked, and didn't answer
}

// Runner runs commands on a host. It is a [sshclient.Client].
type Runner interface {
	Host() sshclient.Host
	Hold(ctx context.Context) (release func(), err error)
	RunInput(ctx context.Context, command string, stdin io.Reader) ([]byte, error)
}

// script is passed on standard input, so that the user's shell does not matter.
//
//go:embed facts.sh
var script string

// patience bounds reading the facts after the login, which may wait for others: a host may accept commands, and then
// hang.
const patience = 2 * time.Minute

// Read reads the facts about a host.
func Read(ctx context.Context, host Runner) (Facts, error) {
	release, err := host.Hold(ctx)
	if err != nil {
		return Facts{}, err
	}
	defer release()
	ctx, cancel := context.WithTimeoutCause(ctx, patience,
		sshclient.Failed(sshclient.ErrTimeout, "collecting facts about the host timed out after %s", patience))
	defer cancel()
	asked := time.Now()
	output, err := host.RunInput(ctx, "sh -s", strings.NewReader(script))
	answered := time.Now()
	if err != nil {
		return Facts{}, err
	}
	f, err := Parse(output)
	if err != nil {
		return Facts{}, sshclient.At(host.Host().String(), &sshclient.Failure{Text: err.Error(), Cause: err})
	}
	f.Address = host.Host().String()
	f.Apart = apart(f.Clock, asked, answered)
	return f, nil
}

// apart returns a clock's minimum difference from this machine's, if it was read between two points in time.
func apart(clock, from, to time.Time) time.Duration {
	switch {
	case clock.IsZero():
		return 0
	case clock.Before(from):
		return clock.Sub(from)
	case clock.After(to):
		return clock.Sub(to)
	}
	return 0
}

// AsRoot returns the command line that runs a program with arguments as root, for any shell that the user may have.
func (f Facts) AsRoot(argv ...string) string {
	if f.UserID != 0 {
		argv = append([]string{"sudo", "-n"}, argv...)
	}
	return sshclient.Quote(argv...)
}

// Has reports whether a program is installed completely and is executable.
func (f Facts) Has(program Program) bool {
	return slices.Contains(f.Programs, program)
}
