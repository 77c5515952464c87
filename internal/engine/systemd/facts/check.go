package facts

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/systemd/layout"
	"github.com/trainyard/terraform-provider-trainyard/internal/sshclient"
)

// The requirements of a host.
const (
	// oldestSystemd is the first version that supports everything in our units.
	oldestSystemd = 247
	// LeastFreeMiB is room for two versions of our programs, and for what is kept of members.
	LeastFreeMiB = 500
	// mostApart is how far clocks may be from each other: leases and deadlines are compared across hosts.
	mostApart = time.Minute
)

// CheckAll returns what hosts lack, see [Check], and which of them are the same machine under two names.
func CheckAll(hosts map[string]Facts, architectures []string) domain.Problems {
	var problems domain.Problems
	names := slices.Sorted(maps.Keys(hosts))
	for i, name := range names {
		f := hosts[name]
		problems = append(problems, Check(name, f, architectures)...)
		if f.MachineID == "" {
			continue
		}
		j := slices.IndexFunc(names[:i], func(other string) bool { return hosts[other].MachineID == f.MachineID })
		if j < 0 {
			continue
		}
		other := hosts[names[j]]
		if other.BootID == f.BootID {
			problems.Add(address(name), "Host declared twice",
				"%q (%s) and %q (%s) are the same machine: both report the "+
					"host name %s, the machine ID %s and the addresses %s. Remove one of them",
				names[j], other.Address,
				name, f.Address, f.Hostname, f.MachineID, list(f.Addresses))
			continue
		}
		mend := []string{
			f.Sudo("rm -f /etc/machine-id /var/lib/dbus/machine-id"), f.Sudo("systemd-machine-id-setup"),
			f.Sudo("systemctl reboot"),
		}
		problems.Warn(address(name), "Duplicate machine ID",
			"%q (%s) and %q (%s) have the same machine ID, %s, although they "+
				"are two machines: one is a clone of the other. Give the clone its own ID: %s",
			names[j], other.Address,
			name, f.Address, f.MachineID, strings.Join(mend, " && "))
	}
	return problems
}

// Check returns all that a host lacks, and what mends it. The architectures are those that there are programs for.
func Check(host string, f Facts, architectures []string) (problems domain.Problems) {
	for _, lack := range f.Judge(architectures) {
		add := problems.Add
		if lack.Warning {
			add = problems.Warn
		}
		add(address(host), lack.Summary, "host %q (%s) %s", host, f.Address, lack)
	}
	return problems
}

// address leads to where a host is declared.
func address(host string) domain.Path { return domain.Path{"hosts", domain.Key(host), "address"} }

// Subject is what a host was looked at for.
type Subject string

// The subjects of [Facts.Judge].
const (
	SubjectRoot          Subject = "root"
	SubjectSystemd       Subject = "systemd"
	SubjectArchitecture  Subject = "architecture"
	SubjectTools         Subject = "tools"
	SubjectIdentity      Subject = "identity"
	SubjectDisk          Subject = "disk"
	SubjectControlGroups Subject = "control groups"
	SubjectClock         Subject = "clock"
)

// Lack is what a host lacks to be one of ours, or, as a warning, to be a good one.
type Lack struct {
	Subject Subject
	// Summary names it in a few words. Found is the rest of a sentence about the host: what there is, and what is
	// needed.
	Summary, Found string
	// Advice says what to do, "" for nothing. Command does it on the host, "" where no single one does; AsRoot is
	// whether it is for root, who has to log in for that.
	Advice, Command string
	AsRoot          bool
	Warning         bool
}

// String returns what was found and what to do.
func (l Lack) String() string {
	text := l.Found
	if l.Advice != "" {
		text += ". " + l.Advice
	}
	if l.Command != "" {
		text += ": " + l.Command
	}
	return text
}

// Judge returns all that the host lacks. The architectures are those that there are programs for.
func (f Facts) Judge(architectures []string) []Lack {
	c := check{Facts: f}
	c.root()
	c.systemd()
	c.architecture(architectures)
	c.tools()
	c.identity()
	c.disk()
	c.controlGroups()
	c.clock()
	return c.found
}

// check is the judgement of one host.
type check struct {
	Facts
	found []Lack
}

func (c *check) add(lack Lack) { c.found = append(c.found, lack) }

func (c *check) root() {
	if c.Root {
		return
	}
	const needs = "Trainyard needs root or a user with passwordless sudo for all commands"
	lack := Lack{Subject: SubjectRoot, Summary: "No root access", Advice: "On the host, run"}
	switch {
	case c.UserID == 0:
		lack.Found, lack.Advice = fmt.Sprintf("does not allow %s to run commands as root, despite user ID 0; %s",
			c.User, needs), ""
	case c.Refusal == noSudo:
		lack.Found = fmt.Sprintf("has no sudo, and %s (user ID %d) is not root; %s", c.User, c.UserID, needs)
		lack.Advice = `Log in as root (address = "root@…"), or run as root on the host`
		lack.Command, lack.AsRoot = c.install("sudo")+" && "+strings.Replace(allow(c.User), "sudo ", "", 1), true
	case strings.Contains(c.Refusal, "tty"):
		lack.Found = fmt.Sprintf("allows %s (user ID %d) to use sudo only from a terminal (%s); %s", c.User, c.UserID,
			c.Refusal, needs)
		lack.Command = sudoers("Defaults:"+c.User+" !requiretty", "trainyard-tty")
	default:
		lack.Found = fmt.Sprintf("does not allow %s (user ID %d) to use sudo without a password (%s); %s", c.User,
			c.UserID, c.Refusal, needs)
		lack.Command = allow(c.User)
	}
	c.add(lack)
}

// noSudo is the refusal of a host without sudo.
const noSudo = "there is no sudo"

func (c *check) systemd() {
	needs := fmt.Sprintf("Trainyard needs systemd %d or newer as PID 1, as in Debian 11, Ubuntu 22.04, RHEL 9 "+
		"and later", oldestSystemd)
	lack := Lack{Subject: SubjectSystemd, Summary: "No systemd"}
	switch {
	case c.Systemd == 0:
		lack.Found = fmt.Sprintf("has no systemd: it runs %s, with %s as PID 1; %s", c.system(), c.first(), needs)
		lack.Advice = "Use another host, or install a distribution with systemd on this one"
	case !c.SystemdRuns:
		lack.Found = fmt.Sprintf("has systemd %d, but PID 1 is %s; %s", c.Systemd, c.first(), needs)
		lack.Advice = "If it is a container, use the machine that it runs on; otherwise boot it with " +
			"init=/lib/systemd/systemd"
	case c.Systemd < oldestSystemd:
		lack.Summary = "systemd too old"
		lack.Found = fmt.Sprintf("has systemd %d (%s); %s", c.Systemd, c.system(), needs)
		lack.Advice, lack.Command = c.upgrade()
		lack.Advice = "Use another host, or " + lack.Advice
	default:
		return
	}
	c.add(lack)
}

func (c *check) system() string {
	if c.OS.Name == "" {
		return "an unknown system"
	}
	return c.OS.Name
}

func (c *check) first() string {
	if c.Init == "" {
		return "an unknown process"
	}
	return c.Init
}

func (c *check) architecture(known []string) {
	if slices.Contains(known, c.Architecture) {
		return
	}
	lack := Lack{
		Subject: SubjectArchitecture, Summary: "Unknown architecture",
		Found:  fmt.Sprintf("has the unknown machine type %q; Trainyard has programs for %s", c.Machine, list(known)),
		Advice: "Use another host",
	}
	if c.Architecture != "" {
		lack.Summary = "No program for the architecture"
		lack.Found = fmt.Sprintf("has the architecture %s (%s); Trainyard has programs for %s", c.Architecture,
			c.Machine, list(known))
		lack.Advice = fmt.Sprintf("Set one for it in the provider's configuration: agent_binaries = { %s = \"PATH\" }",
			c.Architecture)
	}
	c.add(lack)
}

func (c *check) tools() {
	if len(c.Lacks) == 0 {
		return
	}
	var packages []string
	for _, tool := range c.Lacks {
		name := "coreutils"
		if tool == "gzip" {
			name = tool
		}
		if !slices.Contains(packages, name) {
			packages = append(packages, name)
		}
	}
	c.add(Lack{
		Subject: SubjectTools, Summary: "Commands missing",
		Found:  fmt.Sprintf("lacks %s, needed to install Trainyard's programs", domain.Enumerate(c.Lacks)),
		Advice: "Install the packages", Command: c.Sudo(c.install(packages...)),
	})
}

func (c *check) identity() {
	if c.MachineID != "" {
		return
	}
	c.add(Lack{
		Subject: SubjectIdentity, Summary: "No machine ID",
		Found:  "has no machine ID in /etc/machine-id, which identifies a host",
		Advice: "Create one", Command: c.Sudo("systemd-machine-id-setup"),
	})
}

// disk checks the file system of our folder, as far as it could be examined.
func (c *check) disk() {
	at := c.Home
	switch {
	case at.Folder == "" || !c.Root:
		return
	case !at.Writable:
		c.add(Lack{
			Subject: SubjectDisk, Summary: "Read-only disk",
			Found: fmt.Sprintf("has %s on a file system that root can't write to, mounted at %s (%s); "+
				"Trainyard keeps its programs and the state of members in %s",
				at.Folder, at.Mount, strings.Join(at.MountOptions, ","), layout.Home),
			Advice: "Make it writable", Command: c.remount("rw"),
		})
	case slices.Contains(at.MountOptions, "noexec"):
		c.add(Lack{
			Subject: SubjectDisk, Summary: "Disk mounted noexec",
			Found: fmt.Sprintf("has %s on a file system that doesn't allow execution, mounted at %s (%s); "+
				"Trainyard's programs are in %s",
				at.Folder, at.Mount, strings.Join(at.MountOptions, ","), layout.Programs),
			Advice: "Remount it, and remove noexec from /etc/fstab", Command: c.remount("exec"),
		})
	}
	if free := at.FreeBytes >> 20; free < LeastFreeMiB {
		look := "du -xh --max-depth=2 " + sshclient.Quote(at.Mount) + " | sort -h | tail -n 20"
		c.add(Lack{
			Subject: SubjectDisk, Summary: "Disk full",
			Found: fmt.Sprintf("has %d MiB free in %s (mounted at %s); at least %d MiB are needed", free, at.Folder,
				at.Mount, LeastFreeMiB),
			Advice: "See what uses the space", Command: c.Sudo(look),
		})
	}
}

func (c *check) remount(option string) string {
	return c.Sudo("mount -o remount," + option + " " + sshclient.Quote(c.Home.Mount))
}

func (c *check) controlGroups() {
	lack := Lack{Subject: SubjectControlGroups, Warning: true}
	if c.ControlGroups == "" {
		lack.Summary, lack.Found = "No control groups",
			"has no control groups mounted: members' limits are not enforced"
		lack.Advice = "Boot the host with systemd.unified_cgroup_hierarchy=1 on the kernel command line"
		c.add(lack)
		return
	}
	var missing, parameters []string
	for _, controller := range []string{"cpu", "memory"} {
		if !slices.Contains(c.Controllers, controller) {
			missing = append(missing, controller)
			parameters = append(parameters, "cgroup_enable="+controller)
		}
	}
	if missing != nil {
		lack.Summary = "Limits not enforced"
		lack.Found = fmt.Sprintf("has control groups (version %s) without %s (available: %s): "+
			"members' limits are not enforced", c.ControlGroups, domain.Enumerate(missing), list(c.Controllers))
		lack.Advice = fmt.Sprintf("Add %s to the kernel command line, remove cgroup_disable from it, and reboot: "+
			"cat /proc/cmdline shows the current one", strings.Join(parameters, " "))
		c.add(lack)
	}
}

func (c *check) clock() {
	if c.Clock.IsZero() {
		c.add(Lack{
			Subject: SubjectClock, Summary: "Clock unknown", Warning: true, Found: "did not report its time",
			Advice: "Check its clock", Command: "date",
		})
		return
	}
	direction := "ahead of"
	if c.Apart < 0 {
		direction = "behind"
	}
	if c.Apart.Abs() > mostApart {
		c.add(Lack{
			Subject: SubjectClock, Summary: "Clock skew", Warning: true,
			Found: fmt.Sprintf("has a clock %s %s this machine's (it reports %s); at most a minute is allowed",
				c.Apart.Abs().Round(time.Second), direction, c.Clock.UTC().Format(time.RFC3339)),
			Advice: "One of the two is wrong. If it is the host's", Command: c.Sudo("timedatectl set-ntp true"),
		})
	}
}

// list lists names, or says "none".
func list(names []string) string {
	if len(names) == 0 {
		return "none"
	}
	return domain.Enumerate(names)
}
