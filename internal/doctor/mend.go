package doctor

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/trainyard/terraform-provider-trainyard/internal/engine/swarm"
	"github.com/trainyard/terraform-provider-trainyard/internal/sshclient"
)

// packages are what a distribution calls what a host may lack.
type packages struct{ docker, nfs, ntp string }

// byFamily are those of the distributions that differ from Debian's, by [facts.Facts.Family].
var byFamily = map[string]packages{
	"rhel":   {docker: "docker-ce", nfs: "nfs-utils", ntp: "chrony"},
	"fedora": {docker: "moby-engine", nfs: "nfs-utils", ntp: "chrony"},
	"amzn":   {docker: "docker", nfs: "nfs-utils", ntp: "chrony"},
	"suse":   {docker: "docker", nfs: "nfs-client", ntp: "chrony"},
	"arch":   {docker: "docker", nfs: "nfs-utils", ntp: "chrony"},
	"alpine": {docker: "docker", nfs: "nfs-utils", ntp: "chrony"},
}

func (h Host) packages() packages {
	if p, differs := byFamily[h.Family()]; differs {
		return p
	}
	return packages{docker: "docker.io", nfs: "nfs-common", ntp: "systemd-timesyncd"}
}

// usesRPM reports whether the host's packages are those of NVIDIA's and Docker's repositories for dnf.
func (h Host) usesRPM() bool { return h.Family() == "rhel" || h.Family() == "fedora" }

// install is the command that installs packages.
func (h Host) install(names string) string { return h.Sudo(h.Install(names)) }

func (h Host) installDocker() string {
	repository := ""
	if h.Family() == "rhel" {
		repository = h.Sudo("dnf config-manager --add-repo https://download.docker.com/linux/rhel/docker-ce.repo") +
			" && "
	}
	return repository + h.install(h.packages().docker) + " && " + h.Sudo("systemctl enable --now docker")
}

// upgradeDocker installs the newest version of the package that there is.
func (h Host) upgradeDocker() string {
	upgrade := h.install(sshclient.Quote(cmp.Or(h.Details.Docker.Package, h.packages().docker)))
	if h.usesApt() {
		upgrade = h.Sudo("apt-get update") + " && " + upgrade
	}
	return upgrade
}

// usesApt reports whether the host is Debian or like it, as one is taken for that is not known.
func (h Host) usesApt() bool {
	_, differs := byFamily[h.Family()]
	return !differs
}

// joinDocker lets the user use the Engine from the next login on.
func (h Host) joinDocker() string { return "sudo usermod -aG docker " + sshclient.Quote(h.User) }

// nvidiaDriver is the branch that the guides name, too.
const nvidiaDriver = "570"

func (h Host) installDriver() string {
	var install string
	switch {
	case h.Family() == "rhel":
		machine := "x86_64"
		if h.Architecture == "arm64" {
			machine = "sbsa" // as NVIDIA calls servers of it
		}
		const repository = "https://developer.download.nvidia.com/compute/cuda/repos/rhel$(rpm -E " +
			"%%rhel)/%s/cuda-rhel$(rpm -E %%rhel).repo"
		install = h.Sudo(
			"dnf install -y https://dl.fedoraproject.org/pub/epel/epel-release-latest-$(rpm -E %rhel).noarch.rpm",
		) + " && " +
			h.Sudo("dnf config-manager --add-repo "+fmt.Sprintf(repository, machine)) + " && " +
			h.Sudo("dnf module install -y nvidia-driver:open-dkms")
	case h.Family() == "debian":
		install = `. /etc/os-release && echo "deb http://deb.debian.org/debian $VERSION_CODENAME contrib non-free non-free-firmware" | ` +
			h.Sudo("tee /etc/apt/sources.list.d/non-free.list") + " && " + h.Sudo("apt-get update") + " && " +
			h.install("linux-headers-$(dpkg --print-architecture) nvidia-driver")
	default:
		install = h.install("nvidia-driver-" + nvidiaDriver + "-server")
	}
	return install + " && " + h.Sudo("reboot")
}

// installToolkit takes it from NVIDIA's repository, as its guide says.
func (h Host) installToolkit() string {
	const from = "curl -fsSL https://nvidia.github.io/libnvidia-container/"
	const keyring = "/usr/share/keyrings/nvidia-container-toolkit-keyring.gpg"
	install := from + "gpgkey | " + h.Sudo("gpg --dearmor -o "+keyring) + " && " +
		from +
		"stable/deb/nvidia-container-toolkit.list | sed 's#deb https://#deb [signed-by=" + keyring + "] https://#' | " +
		h.Sudo("tee /etc/apt/sources.list.d/nvidia-container-toolkit.list") + " && " + h.Sudo("apt-get update")
	if h.usesRPM() || h.Family() == "amzn" {
		install = from + "stable/rpm/nvidia-container-toolkit.repo | " +
			h.Sudo("tee /etc/yum.repos.d/nvidia-container-toolkit.repo")
	}
	install += " && " + h.install("nvidia-container-toolkit")
	if slices.Contains(h.Engines, swarm.Name) {
		return install + " && " + h.nvidiaByDefault()
	}
	return install + " && " + h.restartDocker()
}

func (h Host) nvidiaByDefault() string {
	return h.Sudo("nvidia-ctk runtime configure --runtime=docker --set-as-default") + " && " + h.restartDocker()
}

func (h Host) restartDocker() string { return h.Sudo("systemctl restart docker") }

func (h Host) installNFS() string { return h.install(h.packages().nfs) }

// installModules brings those that small kernels of Ubuntu lack.
func (h Host) installModules() string {
	if h.usesApt() {
		return h.install("linux-modules-extra-$(uname -r)") + " && " + h.Sudo("modprobe nfs")
	}
	return h.Sudo("modprobe nfs")
}

func (h Host) installNTP() string {
	return h.install(h.packages().ntp) + " && " + h.Sudo("timedatectl set-ntp true")
}

// restartNTP starts the service anew, whichever it is.
func (h Host) restartNTP() string {
	return h.Sudo("timedatectl set-ntp false") + " && " + h.Sudo("timedatectl set-ntp true")
}

// free stops who has a port, or shows who has it where that is no service.
func (h Host) free(port Port, by Listener) string {
	if by.Unit != "" {
		return h.Sudo("systemctl disable --now " + sshclient.Quote(by.Unit))
	}
	if by.Process == "" && port.Protocol == "udp" {
		return "ip -details link show type vxlan" // the kernel has it for such a link
	}
	return h.Sudo(fmt.Sprintf("ss -lntup 'sport = :%d'", port.Number))
}

// kernelParameter is the command that has the kernel start with a parameter.
func (h Host) kernelParameter(parameter string) string {
	if h.usesRPM() {
		return h.Sudo("grubby --update-kernel=ALL --args="+parameter) + " && " + h.Sudo("reboot")
	}
	return fmt.Sprintf(`echo 'GRUB_CMDLINE_LINUX="$GRUB_CMDLINE_LINUX %s"' | %s && %s && %s`, parameter,
		h.Sudo("tee /etc/default/grub.d/trainyard.cfg"), h.Sudo("update-grub"), h.Sudo("reboot"))
}
