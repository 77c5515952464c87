package facts

import (
	"strings"

	"github.com/trainyard/terraform-provider-trainyard/internal/sshclient"
)

// families are how packages are managed, and the system is upgraded where that takes one command, on systems that are
// like the one with an ID.
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

// Family returns the ID of the distribution that the host's is or is like, "" for one that is not known.
func (f Facts) Family() string {
	id, _, _ := f.family()
	return id
}

// family returns how to install packages and how to upgrade, "" for what is not known.
func (f Facts) family() (id, install, upgrade string) {
	for _, id := range f.OS.IDs {
		for _, family := range families {
			if family.id == id {
				return id, family.install, family.upgrade
			}
		}
	}
	return "", "", ""
}

// Sudo returns a command for whoever logs in to the host as the user that we do.
func (f Facts) Sudo(command string) string {
	if f.UserID == 0 {
		return command
	}
	return "sudo " + command
}

// Install returns the command by which root installs packages: that of Debian for a distribution that is not known.
func (f Facts) Install(packages ...string) string {
	_, install, _ := f.family()
	if install == "" {
		install = "apt-get install -y"
	}
	return install + " " + strings.Join(packages, " ")
}

// install is Install for people, who may have to find the packages' names.
func (f Facts) install(packages ...string) string {
	command := f.Install(packages...)
	if f.Family() == "" {
		return command + " (or what the system has in its place)"
	}
	return command
}

// upgrade says how the next version of the system is brought, with the command where it takes one.
func (f Facts) upgrade() (advice, command string) {
	if _, _, upgrade := f.family(); upgrade != "" {
		return "upgrade the system", f.Sudo(upgrade)
	}
	return "upgrade the system to a newer release", ""
}

// allow is the command that lets a user run all commands as root.
func allow(user string) string { return sudoers(user+" ALL=(ALL) NOPASSWD: ALL", "trainyard") }

func sudoers(line, file string) string {
	return "echo " + sshclient.Quote(line) + " | sudo tee /etc/sudoers.d/" + file
}
