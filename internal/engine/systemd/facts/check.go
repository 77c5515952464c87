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
	// leastFreeMiB is room for two versions of our programs, and for the files of members.
	leastFreeMiB = 500
	// mostApart is the maximum difference between clocks: leases and deadlines are compared across hosts.
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
			problems.Add(address(name), "Host declared twice", "%q (%s) and %q (%s) are the same machine: both say that "+
				"they are %s, with the machine ID %s and the addresses %s. Leave one of them out",
				names[j], other.Address, name, f.Address, f.Hostname, f.MachineID, list(f.Addresses))
			continue
		}
		mend := []string{
			f.sudo("rm -f /etc/machine-id /var/lib/dbus/machine-id"), f.sudo("systemd-machine-id-setup"),
			f.sudo("systemctl reboot"),
		}
		problems.Warn(address(name), "Copied machine", "%q (%s) and %q (%s) have the same machine ID, %s, though they are "+
			"two machines: one was copied from the other. Give it an ID of its own: %s",
			names[j], other.Address, name, f.Address, f.MachineID, strings.Join(mend, " && "))
	}
	return problems
}

// Check returns everything that a host lacks, with advice. architectures are those for which there are programs.
func Check(host string, f Facts, architectures []string) domain.Problems {
	c := check{host: host, Facts: f}
	c.root()
	c.systemd()
	c.architecture(architectures)
	c.tools()
	c.identity()
	c.disk()
	c.controlGroups()
	c.clock()
	return c.problems
}

// address is the path of a host's address.
func address(host string) domain.Path { return domain.Path{"hosts", domain.Key(host), "address"} }

// check is the check of one host.
type check struct {
	Facts
	host     string
	problems domain.Problems
}

func (c *check) add(summary, detail string, args ...any) {
	c.problems.Add(address(c.host), summary, "host %q (%s) %s", c.host, c.Address, fmt.Sprintf(detail, args...))
}

func (c *check) warn(summary, detail string, args ...any) {
	c.problems.Warn(address(c.host), summary, "host %q (%s) %s", c.host, c.Address, fmt.Sprintf(detail, args...))
}

// sudo returns a command for a user who logs in to the host as we do.
func (f Facts) sudo(command string) string {
	if f.UserID == 0 {
		return command
	}
	return "sudo " + command
}

func (c *check) root() {
	if c.Root {
		return
	}
	const needs = "Trainyard needs root, or a user with sudo for all commands without a password"
	switch {
	case c.UserID == 0:
		c.add("No root", "lets us in as %s, who may not run commands as root; %s", c.User, needs)
	case c.Refusal == noSudo:
		c.add("No root", "lets us in as %s (user ID %d), and has no sudo; %s. "+
			"Log in as root (address = \"root@…\"), or as root there: %s && %s",
			c.User, c.UserID, needs, c.install("sudo"), strings.Replace(allow(c.User), "sudo ", "", 1))
	case strings.Contains(c.Refusal, "tty"):
		c.add("No root", "lets %s (user ID %d) use sudo at a terminal alone (%s); %s. On the host: %s",
			c.User, c.UserID, c.Refusal, needs, sudoers("Defaults:"+c.User+" !requiretty", "trainyard-tty"))
	default:
		c.add("No root", "does not let %s (user ID %d) use sudo without a password (%s); %s. On the host: %s",
			c.User, c.UserID, c.Refusal, needs, allow(c.User))
	}
}

// noSudo is the refusal of a host without sudo.
const noSudo = "there is no sudo"

// allow returns the command that lets a user run all commands as root.
func allow(user string) string { return sudoers(user+" ALL=(ALL) NOPASSWD: ALL", "trainyard") }

func sudoers(line, file string) string {
	return "echo " + sshclient.Quote(line) + " | sudo tee /etc/sudoers.d/" + file
}

func (c *check) systemd() {
	const needs = "Trainyard needs systemd %d or newer as the first process, as in Debian 11, Ubuntu 22.04, RHEL 9 " +
		"and later ones"
	switch {
	case c.Systemd == 0:
		c.add("No systemd", "has no systemd: it runs %s, started by %s; "+needs+
			". Use another host, or install such a system on this one", c.system(), c.first(), oldestSystemd)
	case !c.SystemdRuns:
		c.add("No systemd", "has systemd %d, but was not started by it: its first process is %s; "+needs+
			". If that is a container, use the machine that it runs on; else start it with init=/lib/systemd/systemd",
			c.Systemd, c.first(), oldestSystemd)
	case c.Systemd < oldestSystemd:
		c.add("Old systemd", "has systemd %d (%s); "+needs+". Use another host, or %s",
			c.Systemd, c.system(), oldestSystemd, c.upgrade())
	}
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
	if c.Architecture == "" {
		c.add("Unknown architecture", "is a machine of the type %q; there are programs for %s. Use another host",
			c.Machine, list(known))
		return
	}
	c.add("No program for the architecture", "is a machine of the architecture %s (%s); there are programs for %s. "+
		"Give one for it in the provider's configuration: agent_binaries = { %s = \"PATH\" }",
		c.Architecture, c.Machine, list(known), c.Architecture)
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
	c.add("Commands missing", "lacks %s, which our programs are brought with. Install what has them: %s",
		domain.Enumerate(c.Lacks), c.sudo(c.install(packages...)))
}

func (c *check) identity() {
	if c.MachineID != "" {
		return
	}
	c.add("No machine ID", "has no machine ID in /etc/machine-id, by which hosts are told apart. Make one: %s",
		c.sudo("systemd-machine-id-setup"))
}

// disk checks the file system of our folder, as far as it could be examined.
func (c *check) disk() {
	at := c.Home
	switch {
	case at.Folder == "" || !c.Root:
		return
	case !at.Writable:
		c.add("Read-only disk", "has %s on a file system that root may not write to, mounted at %s (%s); "+
			"Trainyard keeps its programs and the state of members in %s. Make it writable: %s",
			at.Folder, at.Mount, strings.Join(at.MountOptions, ","), layout.Home, c.remount("rw"))
	case slices.Contains(at.MountOptions, "noexec"):
		c.add("No programs on the disk", "has %s on a file system from which nothing may be executed, mounted at %s (%s); "+
			"Trainyard's programs are in %s. Allow it, and take noexec out of /etc/fstab: %s",
			at.Folder, at.Mount, strings.Join(at.MountOptions, ","), layout.Programs, c.remount("exec"))
	}
	if free := at.FreeBytes >> 20; free < leastFreeMiB {
		look := "du -xh --max-depth=2 " + sshclient.Quote(at.Mount) + " | sort -h | tail -n 20"
		c.add("Disk full", "has %d MiB free in %s (mounted at %s); at least %d are needed. See what takes the room: %s",
			free, at.Folder, at.Mount, leastFreeMiB, c.sudo(look))
	}
}

func (c *check) remount(option string) string {
	return c.sudo("mount -o remount," + option + " " + sshclient.Quote(c.Home.Mount))
}

func (c *check) controlGroups() {
	if c.ControlGroups == "" {
		c.warn("No control groups", "has no control groups mounted: members' limits are not enforced. "+
			"Start the host with systemd.unified_cgroup_hierarchy=1 on the kernel's command line")
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
		c.warn("Limits not enforced", "has control groups (version %s) without %s: there is %s. Nothing keeps members from "+
			"using more than their limits. Add %s to the kernel's command line, take cgroup_disable out of it, and reboot: "+
			"cat /proc/cmdline shows what it is",
			c.ControlGroups, domain.Enumerate(missing), list(c.Controllers), strings.Join(parameters, " "))
	}
}

func (c *check) clock() {
	if c.Clock.IsZero() {
		c.warn("Clock unknown", "did not tell its time. See whether its clock is right: date")
		return
	}
	direction := "ahead of"
	if c.Apart < 0 {
		direction = "behind"
	}
	if c.Apart.Abs() > mostApart {
		c.warn("Clocks apart", "has a clock %s %s this machine's (it says %s); a minute is allowed. "+
			"One of the two is wrong. Where it is the host: %s", c.Apart.Abs().Round(time.Second), direction,
			c.Clock.UTC().Format(time.RFC3339), c.sudo("timedatectl set-ntp true"))
	}
}

// families are the commands that install packages and, if it takes a single one, upgrade the system, for the
// distribution with this ID and those like it.
var families = []struct{ id, install, upgrade string }{
	{"ubuntu", "apt-get install -y", "do-release-upgrade"},
	{"debian", "apt-get install -y", ""},
	{"rhel", "dnf install -y", "leapp upgrade"},
	{"fedora", "dnf install -y", ""},
	{"amzn", "yum install -y", ""},
	{"suse", "zypper install -y", ""},
	{"arch", "pacman -S --noconfirm", "pacman -Syu"},
	{"alpine", "apk add", ""},
}

// family returns the commands that install packages and upgrade the system, "" if unknown.
func (c *check) family() (install, upgrade string) {
	for _, id := range c.OS.IDs {
		for _, family := range families {
			if family.id == id {
				return family.install, family.upgrade
			}
		}
	}
	return "", ""
}

// install returns the command that installs packages.
func (c *check) install(packages ...string) string {
	names := strings.Join(packages, " ")
	if install, _ := c.family(); install != "" {
		return install + " " + names
	}
	return "apt-get install -y " + names + " (or what the system has in its place)"
}

// upgrade says how to get the distribution's next version.
func (c *check) upgrade() string {
	if _, upgrade := c.family(); upgrade != "" {
		return "upgrade the system: " + c.sudo(upgrade)
	}
	return "upgrade the system to a newer release"
}

// list lists names, or returns "none".
func list(names []string) string {
	if len(names) == 0 {
		return "none"
	}
	return domain.Enumerate(names)
}
