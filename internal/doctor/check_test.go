package doctor

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/trainyard/terraform-provider-trainyard/internal/agent/libc"
	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/systemd/facts"
)

const loader = "/lib64/ld-linux-x86-64.so.2"

// good is a host that lacks nothing, and is in a Swarm.
func good() Host {
	return Host{
		Facts: facts.Facts{
			Address: "ops@gpu1", User: "ops", UserID: 1000, Root: true,
			Hostname: "gpu1", MachineID: strings.Repeat("3d", 16), BootID: "bd3ce464-2bb7-4f44-81a9-828529dee982",
			Machine: "x86_64", Architecture: "amd64", Kernel: "6.8.0-60-generic",
			OS:   facts.OS{Name: "Ubuntu 24.04.1 LTS", IDs: []string{"ubuntu", "debian"}},
			Init: "systemd", Systemd: 255, SystemdRuns: true,
			ControlGroups: facts.ControlGroups2, Controllers: []string{"cpu", "memory"},
			Glibc: "2.39", Loaders: []string{loader}, Capacity: domain.Capacity{CPUs: 64, MemoryMiB: 515786},
			Home: facts.Home{
				Folder: "/var/lib", FreeBytes: 200 << 30, Writable: true, Mount: "/", MountOptions: []string{"rw"},
			},
			Ports:  []uint16{22, 2377, 7946},
			NVIDIA: facts.NVIDIA{Driver: "570.86.15", SMI: true, Toolkit: true},
			Docker: facts.Docker{Socket: "/run/docker.sock", Version: "26.1.3"},
			Clock:  time.Unix(1795528745, 0),
		},
		Details: Details{
			Devices: []string{"0000:3b:00.0", "0000:af:00.0"}, Models: []string{"NVIDIA A40", "NVIDIA A40"},
			Docker: Docker{
				Installed: true, Package: "docker.io", Access: true, Swarm: "active", Manager: true, Runtime: "nvidia",
				Root: "/var/lib/docker", FreeBytes: 100 << 30, Measured: true,
			},
			Listeners: []Listener{
				{Port{"tcp", 2377}, "dockerd", "docker.service"}, {Port{"tcp", 7946}, "dockerd", "docker.service"},
				{Port{"udp", 7946}, "dockerd", "docker.service"},
			},
			UDP:   []uint16{4789, 7946},
			Clock: Clock{Known: true, NTP: true, Can: true, Synchronised: true},
			NFS:   NFS{Mounts: []string{"/data"}, Client: true},
		},
		Engines: Engines,
		Here: Programs{
			Platform: "linux/amd64", Known: true, HasAgent: true, Agent: libc.Need{Loader: loader, Glibc: "2.31"},
		},
	}
}

// examined is a host after a change, judged as the engine systemd does with programs for amd64.
func examined(change func(*Host)) []Finding {
	h := good()
	change(&h)
	h.Lacks = h.Judge([]string{"amd64"})
	return Examine(h)
}

func TestGoodHost(t *testing.T) {
	findings := examined(func(*Host) {})
	for _, f := range findings {
		if f.Result != OK || f.Fix != "" || f.Engines != nil {
			t.Errorf("a host that lacks nothing has %+v", f)
		}
	}
	if ready := Ready(findings, Engines); !ready["swarm"] || !ready["systemd"] {
		t.Errorf("it is ready for %v", ready)
	}
}

// Each case is one change of a good host: the check that sees it, what that comes to, and all else as before.
func TestChecks(t *testing.T) {
	both, swarm, systemd := Engines, []string{"swarm"}, []string{"systemd"}
	rocky := []string{"rocky", "rhel", "centos", "fedora"}
	noDocker := func(h *Host) {
		h.Docker, h.Details.Docker, h.NVIDIA, h.Details.Devices = facts.Docker{}, Docker{
			Root: "/var/lib/docker",
		}, facts.NVIDIA{}, nil
		h.Ports, h.Details.UDP, h.Details.Listeners = []uint16{22}, nil, nil
	}
	for name, test := range map[string]struct {
		change func(*Host)
		check  string
		result Result
		about  []string // the engines
		found  string   // a part of it
		fix    string
	}{
		"GPUs without a driver": {
			func(h *Host) { h.NVIDIA = facts.NVIDIA{Toolkit: true} },
			"driver", Problem, both, "has 2 NVIDIA GPUs, but no driver",
			"sudo apt-get install -y nvidia-driver-570-server && sudo reboot",
		},
		"GPUs without a driver on Debian": {
			func(h *Host) { h.NVIDIA.Driver, h.NVIDIA.SMI, h.OS.IDs = "", false, []string{"debian"} },
			"driver", Problem, both, "no driver",
			`. /etc/os-release && echo "deb http://deb.debian.org/debian $VERSION_CODENAME contrib non-free non-free-firmware" | sudo tee /etc/apt/sources.list.d/non-free.list && ` +
				"sudo apt-get update && sudo apt-get install -y linux-headers-$(dpkg --print-architecture) nvidia-driver && sudo reboot",
		},
		"a GPU without a driver on Rocky": {
			func(h *Host) {
				h.NVIDIA.Driver, h.NVIDIA.SMI, h.OS.IDs, h.Details.Devices = "", false, rocky, []string{"0000:3b:00.0"}
			},
			"driver", Problem, both, "has 1 NVIDIA GPU, but no driver",
			"sudo dnf install -y https://dl.fedoraproject.org/pub/epel/epel-release-latest-$(rpm -E %rhel).noarch.rpm && " +
				"sudo dnf config-manager --add-repo https://developer.download.nvidia.com/compute/cuda/repos/rhel$(rpm -E %rhel)/x86_64/cuda-rhel$(rpm -E %rhel).repo && " +
				"sudo dnf module install -y nvidia-driver:open-dkms && sudo reboot",
		},
		"a driver that is not loaded": {
			func(h *Host) { h.NVIDIA.Driver = "" }, "driver", Problem, both, "but the driver is not loaded",
			"sudo modprobe nvidia",
		},
		"a driver that was upgraded": {
			func(h *Host) {
				h.Details.Models, h.Details.SMIFails = nil, "Failed to initialize NVML: Driver/library version mismatch"
			},
			"driver", Problem, both,
			"has driver 570.86.15, but nvidia-smi fails: Failed to initialize NVML: Driver/library version mismatch",
			"sudo reboot",
		},
		"no toolkit": {
			func(h *Host) { h.NVIDIA.Toolkit = false }, "toolkit", Problem, swarm, "lacks the NVIDIA Container Toolkit",
			"curl -fsSL https://nvidia.github.io/libnvidia-container/gpgkey | sudo gpg --dearmor -o /usr/share/keyrings/nvidia-container-toolkit-keyring.gpg && " +
				"curl -fsSL https://nvidia.github.io/libnvidia-container/stable/deb/nvidia-container-toolkit.list | " +
				"sed 's#deb https://#deb [signed-by=/usr/share/keyrings/nvidia-container-toolkit-keyring.gpg] https://#' | sudo tee /etc/apt/sources.list.d/nvidia-container-toolkit.list && " +
				"sudo apt-get update && sudo apt-get install -y nvidia-container-toolkit && " +
				"sudo nvidia-ctk runtime configure --runtime=docker --set-as-default && sudo systemctl restart docker",
		},
		"no toolkit on a bare Rocky": {
			func(h *Host) { h.NVIDIA.Toolkit, h.OS.IDs, h.Engines = false, rocky, systemd }, "toolkit", Warning,
			systemd, "lacks the NVIDIA Container Toolkit",
			"curl -fsSL https://nvidia.github.io/libnvidia-container/stable/rpm/nvidia-container-toolkit.repo | sudo tee /etc/yum.repos.d/nvidia-container-toolkit.repo && " +
				"sudo dnf install -y nvidia-container-toolkit && sudo systemctl restart docker",
		},
		"another default runtime": {
			func(h *Host) { h.Details.Docker.Runtime = "runc" }, "toolkit", Problem, swarm, "default runtime is runc",
			"sudo nvidia-ctk runtime configure --runtime=docker --set-as-default && sudo systemctl restart docker",
		},
		"no Docker": {
			noDocker, "docker", Problem, swarm, "has no Docker Engine",
			"sudo apt-get install -y docker.io && sudo systemctl enable --now docker",
		},
		"no Docker on a bare host": {
			func(h *Host) { noDocker(h); h.Engines = systemd }, "docker", Warning, systemd,
			"which a Swarm and roles with an image need",
			"sudo apt-get install -y docker.io && sudo systemctl enable --now docker",
		},
		"no Docker on Rocky": {
			func(h *Host) { noDocker(h); h.OS.IDs = rocky }, "docker", Problem, swarm, "has no Docker Engine",
			"sudo dnf config-manager --add-repo https://download.docker.com/linux/rhel/docker-ce.repo && sudo dnf install -y docker-ce && sudo systemctl enable --now docker",
		},
		"no Docker on Fedora": {
			func(h *Host) { noDocker(h); h.OS.IDs = []string{"fedora"} }, "docker", Problem, swarm,
			"has no Docker Engine", "sudo dnf install -y moby-engine && sudo systemctl enable --now docker",
		},
		"Docker that does not run": {
			func(h *Host) { noDocker(h); h.Details.Docker.Installed = true }, "docker", Problem, swarm,
			"has a Docker Engine that is not running", "sudo systemctl enable --now docker",
		},
		"Docker that is not the user's": {
			func(h *Host) { h.Details.Docker.Access = false }, "docker", Problem, swarm,
			"has a Docker Engine 26.1.3, which ops may not use", "sudo usermod -aG docker ops",
		},
		"Docker that does not answer": {
			func(h *Host) { h.Docker.Silent, h.Docker.Version = true, "" }, "docker", Problem, swarm,
			"does not answer at /run/docker.sock", "sudo systemctl restart docker",
		},
		"an old Docker": {
			func(h *Host) { h.Docker.Version, h.Details.Docker.Package = "19.03.15", "docker-ce" }, "docker", Problem,
			swarm, "has Docker Engine 19.03.15; 20.10 or newer is needed",
			"sudo apt-get update && sudo apt-get install -y docker-ce",
		},
		"a locked Swarm": {
			func(h *Host) { h.Details.Docker.Swarm = "locked" }, "swarm", Problem, swarm, "locked",
			"sudo docker swarm unlock",
		},
		"a broken Swarm": {
			func(h *Host) { h.Details.Docker.Swarm, h.Details.Docker.SwarmError = "error", "no such key" }, "swarm",
			Problem, swarm, "is in a Swarm, in state error: no such key", "",
		},
		"a broken Swarm without a reason": {
			func(h *Host) { h.Details.Docker.Swarm = "error" }, "swarm", Problem, swarm, "in state error",
			"sudo docker info --format '{{.Swarm.Error}}'",
		},
		"a Swarm being entered": {
			func(h *Host) { h.Details.Docker.Swarm = "pending" }, "swarm", Warning, swarm,
			"is entering its Swarm, or its managers don't answer: wait", "",
		},
		"a Swarm in an unknown state": {
			func(h *Host) { h.Details.Docker.Swarm = "" }, "swarm", NotApplicable, nil, "could not be queried", "",
		},
		"ports taken": {
			func(h *Host) {
				h.Details.Docker.Swarm, h.Ports, h.Details.UDP = inactive, []uint16{22, 7946}, []uint16{7946}
				h.Details.Listeners = []Listener{
					{Port{"tcp", 7946}, "serf", "serf.service"}, {Port{"udp", 7946}, "serf", "serf.service"},
				}
			},
			"swarm-ports", Problem, swarm, "has ports in use that a Swarm needs: 7946/tcp (serf), 7946/udp (serf)",
			"sudo systemctl disable --now serf.service",
		},
		"ports taken by a process and the kernel": {
			func(h *Host) {
				h.Details.Docker.Swarm, h.Ports, h.Details.UDP = inactive, []uint16{2377}, []uint16{4789}
				h.Details.Listeners = []Listener{{Port{"tcp", 2377}, "nc", ""}}
			},
			"swarm-ports", Problem, swarm, "2377/tcp (nc), 4789/udp",
			"sudo ss -lntup 'sport = :2377' && ip -details link show type vxlan",
		},
		"a port that the Swarm has not": {
			func(h *Host) {
				h.Details.Listeners[2] = Listener{Port{"udp", 7946}, "serf", "serf.service"}
			},
			"swarm-ports", Problem, swarm, "7946/udp (serf)", "sudo systemctl disable --now serf.service",
		},
		"ports of nobody knows whom": {
			func(h *Host) { h.Details.Docker.Swarm, h.Details.Listeners = "", nil }, "swarm-ports", NotApplicable, nil,
			"does not show without root what uses 2377/tcp, 7946/tcp, 7946/udp, 4789/udp", "",
		},
		"an old systemd": {
			func(h *Host) { h.Systemd = 245 }, "systemd", Problem, systemd,
			"has systemd 245 (Ubuntu 24.04.1 LTS); Trainyard needs systemd 247", "sudo do-release-upgrade",
		},
		"no systemd": {
			func(h *Host) { h.Systemd, h.SystemdRuns = 0, false }, "systemd", Problem, systemd, "has no systemd", "",
		},
		"another first process": {
			func(h *Host) { h.SystemdRuns, h.Init = false, "sh" }, "systemd", Problem, systemd, "PID 1 is sh", "",
		},
		"no sudo without a password": {
			func(h *Host) { h.Root, h.Refusal = false, "a password is required" }, "sudo", Problem, systemd,
			"does not allow ops (user ID 1000) to use sudo without a password",
			"echo 'ops ALL=(ALL) NOPASSWD: ALL' | sudo tee /etc/sudoers.d/trainyard",
		},
		"no sudo at all": {
			func(h *Host) { h.Root, h.Refusal = false, "there is no sudo" }, "sudo", Problem, systemd, "has no sudo",
			`su -c 'apt-get install -y sudo && echo '\''ops ALL=(ALL) NOPASSWD: ALL'\'' | tee /etc/sudoers.d/trainyard'`,
		},
		"a clock 90 s ahead": {
			func(h *Host) { h.Apart = 90 * time.Second }, "clock", Warning, both,
			"has a clock 1m30s ahead of this machine's", "sudo timedatectl set-ntp true",
		},
		"a clock behind, and no NTP": {
			func(h *Host) { h.Apart, h.Details.Clock = -time.Hour, Clock{Known: true} }, "clock", Warning, both,
			"1h0m0s behind", "sudo apt-get install -y systemd-timesyncd && sudo timedatectl set-ntp true",
		},
		"a clock without NTP": {
			func(h *Host) { h.Details.Clock, h.OS.IDs = Clock{Known: true}, rocky }, "clock", Warning, both,
			"has no NTP client", "sudo dnf install -y chrony && sudo timedatectl set-ntp true",
		},
		"NTP that is off": {
			func(h *Host) { h.Details.Clock.NTP, h.Details.Clock.Synchronised = false, false }, "clock", Warning, both,
			"NTP is off", "sudo timedatectl set-ntp true",
		},
		"NTP in vain": {
			func(h *Host) { h.Details.Clock.Synchronised, h.Apart = false, -2*time.Second }, "clock", Warning, both,
			"is 2s behind this machine's clock, but NTP has not synchronised it",
			"sudo timedatectl set-ntp false && sudo timedatectl set-ntp true",
		},
		"nothing known of NTP": {
			func(h *Host) { h.Details.Clock, h.Apart = Clock{}, time.Second }, "clock", OK, nil,
			"is 1s ahead of this machine's clock; unknown whether NTP", "",
		},
		"a full disk": {
			func(h *Host) { h.Home.FreeBytes = 499 << 20 }, "disk", Problem, systemd, "has 499 MiB free in /var/lib",
			"sudo du -xh --max-depth=2 / | sort -h | tail -n 20",
		},
		"a disk without programs": {
			func(h *Host) { h.Home.MountOptions = []string{"rw", "noexec"} }, "disk", Problem, systemd,
			"doesn't allow execution", "sudo mount -o remount,exec /",
		},
		"a full disk of Docker": {
			func(h *Host) { h.Details.Docker.FreeBytes = 0 }, "docker-disk", Problem, swarm,
			"has 0 MiB free for Docker's data, in /var/lib/docker; at least 500 MiB", "sudo docker image prune --all",
		},
		"little room for images": {
			func(h *Host) { h.Details.Docker.FreeBytes = 9 << 30 }, "docker-disk", Warning, both, "has 9.0 GiB free",
			"sudo docker image prune --all",
		},
		"a disk that is not measured": {
			func(h *Host) { h.Details.Docker.FreeBytes, h.Details.Docker.Measured = 0, false }, "docker-disk",
			NotApplicable, nil, "does not report", "",
		},
		"no NFS client": {
			func(h *Host) { h.Details.NFS.Client = false }, "nfs", Warning, both, "has no NFS client to mount /data",
			"sudo apt-get install -y nfs-common",
		},
		"no NFS client on Rocky": {
			func(h *Host) { h.Details.NFS.Client, h.OS.IDs = false, rocky }, "nfs", Warning, both, "has no NFS client",
			"sudo dnf install -y nfs-utils",
		},
		"a kernel without NFS": {
			func(h *Host) { h.Details.NFS.NoModule = true }, "nfs", Warning, both, "a kernel without NFS",
			"sudo apt-get install -y linux-modules-extra-$(uname -r) && sudo modprobe nfs",
		},
		"nothing of NFS": {
			func(h *Host) { h.Details.NFS = NFS{} }, "nfs", NotApplicable, nil, "mounts no NFS", "",
		},
		"control groups of version 1": {
			func(h *Host) { h.ControlGroups = facts.ControlGroupsHybrid }, "cgroups", Warning, both,
			"cgroup v1 (hybrid)",
			`echo 'GRUB_CMDLINE_LINUX="$GRUB_CMDLINE_LINUX systemd.unified_cgroup_hierarchy=1"' | sudo tee /etc/default/grub.d/trainyard.cfg && sudo update-grub && sudo reboot`,
		},
		"control groups of version 1 on Rocky": {
			func(h *Host) { h.ControlGroups, h.OS.IDs = facts.ControlGroups1, rocky }, "cgroups", Warning, both,
			"cgroup v1;",
			"sudo grubby --update-kernel=ALL --args=systemd.unified_cgroup_hierarchy=1 && sudo reboot",
		},
		"no limits of memory": {
			func(h *Host) { h.Controllers = []string{"cpu"} }, "cgroups", Warning, both, "without memory", "",
		},
		"another architecture": {
			func(h *Host) { h.Machine, h.Architecture = "aarch64", "arm64" }, "architecture", Problem, systemd,
			"agent_binaries = { arm64", "",
		},
		"another architecture on a Swarm": {
			func(h *Host) { h.Machine, h.Architecture, h.Engines = "aarch64", "arm64", swarm }, "architecture", Warning,
			swarm, "need docker.controller_image there, as this machine is linux/amd64", "",
		},
		"a provider on macOS": {
			func(h *Host) { h.Here.Platform = "darwin/amd64" }, "architecture", Warning, swarm,
			"as this machine is darwin/amd64", "",
		},
		"an old glibc": {
			func(h *Host) { h.Glibc = "2.28" }, "glibc", Warning, systemd,
			"has glibc 2.28 (Ubuntu 24.04.1 LTS), and trainyard-agent needs glibc 2.31 or newer: its GPUs can't be read",
			"",
		},
		"a glibc too old for the program": {
			func(h *Host) { h.Here.Program = libc.Need{Loader: loader, Glibc: "2.40"} }, "glibc", Problem, systemd,
			"Build it with CGO_ENABLED=0", "",
		},
		"no agent": {
			func(h *Host) { h.Here.HasAgent = false }, "glibc", NotApplicable, nil,
			"no trainyard-agent next to this program", "",
		},
		"commands missing": {
			func(h *Host) { h.Facts.Lacks = []string{"gzip"} }, "commands", Problem, systemd, "lacks gzip",
			"sudo apt-get install -y gzip",
		},
		"no machine ID": {
			func(h *Host) { h.MachineID = "" }, "machine-id", Problem, systemd, "has no machine ID",
			"sudo systemd-machine-id-setup",
		},
	} {
		t.Run(name, func(t *testing.T) {
			findings := examined(test.change)
			i := slices.IndexFunc(findings, func(f Finding) bool { return f.Check == test.check })
			f := findings[i]
			if f.Result != test.result || !slices.Equal(f.Engines, test.about) {
				t.Errorf("it is a %s for %v, want a %s for %v: %+v", f.Result, f.Engines, test.result, test.about, f)
			}
			if !strings.Contains(f.Found, test.found) {
				t.Errorf("%q lacks %q", f.Found, test.found)
			}
			if diff := cmp.Diff(test.fix, f.Fix); diff != "" {
				t.Errorf("the fix (-want +got):\n%s", diff)
			}
			for _, other := range findings {
				if other.Check != test.check && (other.Result == Problem || other.Result == Warning) {
					t.Errorf("another check says %+v", other)
				}
			}
			ready := Ready(findings, Engines)
			for _, engine := range Engines {
				if ready[engine] != (test.result != Problem || !slices.Contains(test.about, engine)) {
					t.Errorf("it is ready for %v", ready)
				}
			}
		})
	}
}

// An engine hears of what it needs, and of nothing else.
func TestNarrowed(t *testing.T) {
	for engine, want := range map[string][]string{
		"swarm":   {"sudo", "systemd", "glibc", "commands", "machine-id", "disk"},
		"systemd": {"swarm", "swarm-ports"},
	} {
		var without []string
		findings := examined(func(h *Host) { h.Engines = []string{engine} })
		for _, c := range checks {
			if !slices.ContainsFunc(findings, func(f Finding) bool { return f.Check == c.name }) {
				without = append(without, c.name)
			}
		}
		if diff := cmp.Diff(want, without); diff != "" {
			t.Errorf("for %s (-want +got):\n%s", engine, diff)
		}
	}
}

// Fixes for root need no sudo.
func TestFixesForRoot(t *testing.T) {
	for _, f := range examined(func(h *Host) {
		h.User, h.UserID = "root", 0
		h.NVIDIA, h.Docker.Version, h.MachineID, h.Details.NFS.Client = facts.NVIDIA{}, "1.2", "", false
	}) {
		if strings.Contains(f.Fix, "sudo") {
			t.Errorf("%s: %s", f.Check, f.Fix)
		}
	}
}

// What a host reports can't inject a command into a fix.
func TestFixesAreQuoted(t *testing.T) {
	const evil = "x;reboot"
	findings := examined(func(h *Host) {
		h.User, h.Details.Docker.Access, h.Details.Docker.Swarm = evil, false, inactive
		h.Root, h.Refusal, h.Home.Mount = false, "no", "/"+evil
		h.Details.Listeners[0] = Listener{Port{"tcp", 2377}, evil, evil + ".service"}
	})
	findings = append(findings, examined(func(h *Host) { h.Docker.Version, h.Details.Docker.Package = "1.2", evil })...)
	seen := 0
	for _, f := range findings {
		if !strings.Contains(f.Fix, evil) {
			continue
		}
		if seen++; !strings.Contains(f.Fix, "'"+evil) {
			t.Errorf("%s: %s", f.Check, f.Fix)
		}
	}
	if seen != 4 {
		t.Errorf("%d fixes have what the host reported, want 4: %+v", seen, findings)
	}
}
