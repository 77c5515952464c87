package doctor

import (
	"fmt"
	"strings"

	"github.com/trainyard/terraform-provider-trainyard/internal/agent/libc"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/systemd/facts"
)

const (
	// oldestDocker is the first version of the Engine that is tested.
	oldestDocker = "20.10"
	// roomForImages is what an image or two for training take: with less, pulls are about to fail.
	roomForImages = 10 << 30
)

func dockerEngine(h Host) verdict {
	version := strings.TrimSpace("Docker Engine " + h.Docker.Version)
	engine := h.Details.Docker
	switch {
	case h.Docker.Socket == "" && engine.Installed:
		return swarmProblem(Warning, "has a Docker Engine that is not running", h.Sudo("systemctl enable --now docker"))
	case h.Docker.Socket == "":
		return swarmProblem(Warning, "has no Docker Engine, which a Swarm and roles with an image need",
			h.installDocker())
	case h.UserID != 0 && !engine.Access && (!h.Root || !h.Docker.Silent):
		return swarmProblem(OK, fmt.Sprintf("has a %s, which %s may not use", version, h.User), h.joinDocker())
	case h.Docker.Silent:
		return swarmProblem(Warning, "has a Docker Engine that does not answer at "+h.Docker.Socket, h.restartDocker())
	case h.Docker.Version != "" && libc.Older(h.Docker.Version, oldestDocker):
		return swarmProblem(Warning, fmt.Sprintf("has %s; %s or newer is needed", version, oldestDocker),
			h.upgradeDocker())
	}
	return ok(fmt.Sprintf("has %s, which %s may use", version, h.User))
}

func dockerDisk(h Host) verdict {
	at := h.Details.Docker
	switch {
	case h.Docker.Socket == "":
		return notApplicable("has no running Docker Engine")
	case !at.Measured:
		return notApplicable("does not report the free space in " + at.Root)
	}
	found := fmt.Sprintf("has %s free for Docker's data, in %s", gib(at.FreeBytes), at.Root)
	prune := h.Sudo("docker image prune --all")
	switch {
	case at.FreeBytes>>20 < facts.LeastFreeMiB:
		return swarmProblem(Warning, found+fmt.Sprintf("; at least %d MiB are needed", facts.LeastFreeMiB), prune)
	case at.FreeBytes < roomForImages:
		return forAll(Warning, found+"; an image with CUDA may not fit", prune)
	}
	return ok(found)
}

// gib is a size in GiB, or in MiB where that is more telling.
func gib(bytes int64) string {
	if bytes < 1<<30 {
		return fmt.Sprintf("%d MiB", bytes>>20)
	}
	return fmt.Sprintf("%.1f GiB", float64(bytes)/(1<<30))
}
