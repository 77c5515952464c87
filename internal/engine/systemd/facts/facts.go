// Package facts reads what a bare host is and has, with a single command over SSH, and reports what it lacks to join a
// cluster.
package facts

import (
	"context"
	_ "embed"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/sshclient"
)

// Facts are what a host says of itself. What it does not tell is zero.
type Facts struct {
	// Address is where it was asked, as [user@]host[:port].
	Address string

	// User is who logs in, with this ID.
	User   string
	UserID int
	// Root tells that commands can be run as root: by root itself, or with sudo. Refusal is why not.
	Root    bool
	Refusal string

	Hostname  string
	MachineID string // of the installation; copies of a machine may have the same
	BootID    string // of the kernel's start; containers on a machine have the same
	// Machine is the architecture as uname -m says it, Architecture as Go does, "" for one that Go doesn't know.
	Machine, Architecture string
	Kernel                string // its release
	OS                    OS
	// Init is the name of the first process. Systemd is the version of systemd that is installed, 0 for none, and
	// SystemdRuns tells that it runs the host.
	Init        string
	Systemd     int
	SystemdRuns bool
	// ControlGroups are the hierarchies of control groups, and Controllers what there is to be limited in them, sorted.
	ControlGroups ControlGroups
	Controllers   []string
	SELinux       bool     // enforcing
	Glibc         string   // its version; "" where there is another C library
	Loaders       []string // the files of the dynamic loaders, by which programs are started that are not linked statically
	Python        string   // the version of python3
	Lacks         []string // the commands that we use, and that are not there

	Capacity domain.Capacity
	Home     Home
	// Programs are those of ours that are installed.
	Programs []Program
	// Clusters are those that have a state directory on the host.
	Clusters []string

	Ports     []uint16 // TCP ports that something listens on, sorted
	Addresses []string // IP addresses but those of the loopback and of links, sorted
	HostKeys  []string // public keys of the SSH server, as lines of authorized_keys without a comment

	NVIDIA NVIDIA
	Docker Docker

	// Clock is the host's time when it answered, and Apart how far it was from this machine's at the least: negative
	// for a host that is behind.
	Clock time.Time
	Apart time.Duration
}

// OS is a Linux distribution.
type OS struct {
	Name string   // with the version, for people
	IDs  []string // its own and those that it is like, such as rhel and fedora
}

// ControlGroups are the hierarchies of control groups of a host.
type ControlGroups string

// The hierarchies that there are.
const (
	ControlGroups1      ControlGroups = "1"
	ControlGroupsHybrid ControlGroups = "hybrid" // 1, and 2 for systemd alone
	ControlGroups2      ControlGroups = "2"
)

// Home is where all that is ours is kept, or will be.
type Home struct {
	// Folder is that, or the nearest folder above that exists, without links.
	Folder string
	// FreeBytes are free there.
	FreeBytes int64
	// Writable tells that whoever ran the commands may write there: root, if [Facts.Root].
	Writable bool
	// Mount is where the file system is mounted, and MountOptions are how.
	Mount        string
	MountOptions []string
}

// Program is a file that we installed, which is known by the digest of its content.
type Program struct {
	Digest, Name string
	Bytes        int64
}

// NVIDIA is what there is for NVIDIA's GPUs.
type NVIDIA struct {
	Driver  string // the version of the driver that is loaded; "" for none
	SMI     bool   // nvidia-smi is there
	Toolkit bool   // the container toolkit is there
}

// Docker is the Docker Engine of a host.
type Docker struct {
	Socket  string // "" for none
	Version string // "" for one that nothing was told of
	Silent  bool   // it was asked, and didn't answer
}

// Runner runs commands on a host. It is a [sshclient.Client].
type Runner interface {
	Host() sshclient.Host
	RunInput(ctx context.Context, command string, stdin io.Reader) ([]byte, error)
}

// script is passed on standard input: so it does not matter which shell the user has.
//
//go:embed facts.sh
var script string

// Read reads the facts about a host.
func Read(ctx context.Context, host Runner) (Facts, error) {
	asked := time.Now()
	output, err := host.RunInput(ctx, "sh -s", strings.NewReader(script))
	answered := time.Now()
	if err != nil {
		return Facts{}, err
	}
	f, err := Parse(output)
	if err != nil {
		return Facts{}, fmt.Errorf("%s: %w", host.Host(), err)
	}
	f.Address = host.Host().String()
	f.Apart = apart(f.Clock, asked, answered)
	return f, nil
}

// apart is how far a clock is from this machine's at the least, if it was read between two moments.
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

// Has reports whether a program is installed: the whole of it, and so that it can be run.
func (f Facts) Has(program Program) bool {
	return slices.Contains(f.Programs, program)
}
