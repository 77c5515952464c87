//go:build linux

package node

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"github.com/trainyard/terraform-provider-trainyard/internal/agent/containers"
	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/systemd/facts"
)

// preflight returns what would keep specifications from running on this host, as units or as containers.
func (p part) preflight(ctx context.Context, specs []domain.MemberSpec) (domain.Problems, error) {
	problems, err := p.Preflight(ctx, specs)
	contained := slices.DeleteFunc(slices.Clone(specs), func(spec domain.MemberSpec) bool { return spec.Image == "" })
	if err != nil || len(contained) == 0 {
		return problems, err
	}
	docker, err := containers.Open(containers.Socket)
	if err != nil {
		return problems, err
	}
	return append(problems, (&images{docker, thisHost}).check(ctx, contained)...), nil
}

// images judges specifications with an image by a Docker Engine and its host.
type images struct {
	docker interface {
		Facts(ctx context.Context) (containers.Facts, error)
		Pulls(ctx context.Context, name string, policy domain.PullPolicy) (bool, error)
	}
	host toolkitHost
}

func (i *images) check(ctx context.Context, specs []domain.MemberSpec) (problems domain.Problems) {
	away := i.await(ctx)
	for _, spec := range specs {
		at := domain.Path{"roles", domain.Key(spec.Role)}
		if away != nil {
			facts.NoEngine(&problems, spec, away.Error())
			continue
		}
		if spec.UsesGPUs() {
			i.host.check(&problems, at.At("gpus"), spec)
		}
		if spec.Container.PullPolicy != domain.PullNever {
			continue
		}
		if _, err := i.docker.Pulls(ctx, spec.Image, domain.PullNever); err != nil {
			problems.Add(at.At("image"), "Image missing", "host %q can't run role %q: %v. Load it there (sudo docker load --input FILE), or leave container.pull_policy out",
				spec.Host, spec.Role, err)
		}
	}
	return problems
}

const (
	// enginePatience is how long an Engine that refuses connections may be about to start.
	enginePatience = 5 * time.Second
	engineRetry    = 200 * time.Millisecond
)

// await returns why the Engine does not answer, or nil. The socket may be there before it takes connections.
func (i *images) await(ctx context.Context) error {
	for begun := time.Now(); ; {
		_, err := i.docker.Facts(ctx)
		if !errors.Is(err, syscall.ECONNREFUSED) || time.Since(begun) > enginePatience {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(engineRetry):
		}
	}
}

// toolkitHost is where NVIDIA's container toolkit is looked for: in the folders of programs, below a root.
type toolkitHost struct {
	root    string
	folders []string
}

// thisHost looks where a Docker Engine does, which is a unit of systemd.
var thisHost = toolkitHost{root: "/", folders: filepath.SplitList(defaultPath)}

// enginePID is written by a Docker Engine when it starts.
const enginePID = "/run/docker.pid"

// check adds what keeps a Docker Engine from giving GPUs to a member.
func (h toolkitHost) check(problems *domain.Problems, at domain.Path, spec domain.MemberSpec) {
	hook := h.hook()
	if hook == nil {
		facts.NoToolkit(problems, spec)
		return
	}
	started, err := os.Stat(filepath.Join(h.root, enginePID))
	if err == nil && installed(hook).After(started.ModTime()) {
		problems.Warn(at, "Docker Engine older than the container toolkit", "on host %q, the Docker Engine has run since before NVIDIA's container toolkit was installed or upgraded, and looks for it when it starts. "+
			"If role %q can't be started as no device driver has the capabilities [[gpu]]: sudo systemctl restart docker, which ends all containers there unless \"live-restore\" is set",
			spec.Host, spec.Role)
	}
}

// hook returns the file that the toolkit is known by, or nil.
func (h toolkitHost) hook() fs.FileInfo {
	for _, folder := range h.folders {
		info, err := os.Stat(filepath.Join(h.root, folder, facts.ToolkitHook))
		if err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 {
			return info
		}
	}
	return nil
}

// installed returns when a file came to this host: packages give files the times at which they were built.
func installed(file fs.FileInfo) time.Time {
	if stat, ok := file.Sys().(*syscall.Stat_t); ok {
		return time.Unix(stat.Ctim.Unix())
	}
	return file.ModTime()
}
