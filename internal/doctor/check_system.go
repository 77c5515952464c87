package doctor

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/trainyard/terraform-provider-trainyard/internal/agent/libc"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/swarm"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/systemd"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/systemd/facts"
	"github.com/trainyard/terraform-provider-trainyard/internal/sshclient"
)

// lack is a check of something that package facts judges for the engine systemd; without a lack, its finding is good.
func lack(subject facts.Subject, good func(Host) string) func(Host) verdict {
	return func(h Host) verdict {
		v := verdict{results: map[string]Result{systemd.Name: OK}, found: good(h)}
		if l, lacks := h.lack(subject); lacks {
			v.results[systemd.Name], v.found, v.fix = judged(l)
		}
		return v
	}
}

// lack returns what the host lacks of a subject.
func (h Host) lack(subject facts.Subject) (facts.Lack, bool) {
	i := slices.IndexFunc(h.Lacks, func(l facts.Lack) bool { return l.Subject == subject })
	if i < 0 {
		return facts.Lack{}, false
	}
	return h.Lacks[i], true
}

// judged is a lack as a finding: without a command that mends it, the advice is part of it.
func judged(l facts.Lack) (result Result, found, fix string) {
	result, found = Problem, l.Found
	if l.Warning {
		result = Warning
	}
	fix = l.Command
	switch {
	case fix == "" && l.Advice != "":
		found += ". " + l.Advice
	case l.AsRoot:
		fix = "su -c " + sshclient.Quote(fix)
	}
	return result, found, fix
}

func runsSystemd(h Host) string {
	return fmt.Sprintf("runs systemd %d as the first process", h.Systemd)
}

func becomesRoot(h Host) string {
	if h.UserID == 0 {
		return "accepts logins as root"
	}
	return "lets " + h.User + " use sudo without a password"
}

func hasRoom(h Host) string {
	return fmt.Sprintf("has %s free in %s, mounted at %s", gib(h.Home.FreeBytes), h.Home.Folder, h.Home.Mount)
}

func hasTools(Host) string {
	return "has gzip, mktemp and sha256sum"
}

func hasIdentity(Host) string { return "has a machine ID of its own" }

func clock(h Host) verdict {
	if l, lacks := h.lack(facts.SubjectClock); lacks {
		result, found, fix := judged(l)
		if h.Details.Clock.Known && !h.Details.Clock.Can {
			fix = h.installNTP()
		}
		return forAll(result, found, fix)
	}
	found := "agrees with this machine's clock"
	switch apart := h.Apart.Abs().Round(time.Millisecond); {
	case h.Apart > 0:
		found = fmt.Sprintf("is %s ahead of this machine's clock", apart)
	case h.Apart < 0:
		found = fmt.Sprintf("is %s behind this machine's clock", apart)
	}
	switch ntp := h.Details.Clock; {
	case !ntp.Known:
		return ok(found + "; unknown whether NTP keeps it in sync")
	case ntp.Synchronised:
		return ok(found + ", and NTP keeps it in sync")
	case !ntp.Can:
		return forAll(Warning, found+", but has no NTP client", h.installNTP())
	case !ntp.NTP:
		return forAll(Warning, found+", but NTP is off", h.Sudo("timedatectl set-ntp true"))
	}
	return forAll(Warning, found+", but NTP has not synchronised it", h.restartNTP())
}

func nfs(h Host) verdict {
	n := h.Details.NFS
	mounts := strings.Join(n.Mounts, ", ")
	switch {
	case n.Mounts == nil && n.NoModule:
		return notApplicable("mounts no NFS in /etc/fstab; its kernel has no module for it")
	case n.Mounts == nil:
		return notApplicable("mounts no NFS in /etc/fstab")
	case !n.Client:
		return forAll(Warning, "has no NFS client to mount "+mounts, h.installNFS())
	case n.NoModule:
		return forAll(Warning, "has a kernel without NFS, and can't mount "+mounts, h.installModules())
	}
	return ok("has an NFS client for " + mounts)
}

func controlGroups(h Host) verdict {
	if l, lacks := h.lack(facts.SubjectControlGroups); lacks {
		return forAll(judged(l))
	}
	if h.ControlGroups != facts.ControlGroups2 {
		version := "1"
		if h.ControlGroups == facts.ControlGroupsHybrid {
			version = "1 (hybrid)"
		}
		return forAll(Warning, "has cgroup v"+version+"; systemd 258 and newer need cgroup v2",
			h.kernelParameter("systemd.unified_cgroup_hierarchy=1"))
	}
	return ok("has cgroup v2 with CPU and memory")
}

func architecture(h Host) verdict {
	v := verdict{results: map[string]Result{swarm.Name: OK, systemd.Name: OK}}
	v.found = fmt.Sprintf("is %s (%s), with Linux %s", h.Architecture, h.Machine, h.Kernel)
	if l, lacks := h.lack(facts.SubjectArchitecture); lacks {
		v.results[systemd.Name], v.found, v.fix = judged(l)
	}
	if "linux/"+h.Architecture != h.Here.Platform {
		v.results[swarm.Name] = Warning
		v.found += "; a Swarm's controller and agents need docker.controller_image there, as this machine is " +
			h.Here.Platform
	}
	return v
}

func library(h Host) verdict {
	has := "has glibc " + h.Glibc
	if h.Glibc == "" {
		has = "has no glibc"
	}
	if !h.Here.Known {
		return forSystemd(NotApplicable, has+"; no program for its architecture to compare with")
	}
	if why, mend := h.CantStart("the program for hosts", h.Here.Program); why != "" {
		return forSystemd(Problem, why+". Build it with CGO_ENABLED=0, or "+mend)
	}
	if !h.Here.HasAgent {
		return forSystemd(NotApplicable, has+"; no trainyard-agent next to this program to compare with")
	}
	if why, mend := h.CantStart("trainyard-agent", h.Here.Agent); why != "" && h.hasGPUs() {
		return forSystemd(Warning, why+": its GPUs can't be read. To read them, "+mend)
	}
	if h.Here.Agent == (libc.Need{}) {
		return forSystemd(OK, has+", and trainyard-agent needs none")
	}
	needs := has + "; trainyard-agent needs " + cmp.Or(h.Here.Agent.Glibc, h.Here.Agent.Loader)
	if !h.hasGPUs() {
		needs += " to read GPUs"
	}
	return forSystemd(OK, needs)
}
