//go:build linux

package node

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/trainyard/terraform-provider-trainyard/internal/agent/containers"
	"github.com/trainyard/terraform-provider-trainyard/internal/agent/units"
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
	return append(problems, (&images{docker, thisHost, serviceOf(docker)}).check(ctx, contained)...), nil
}

// service is the service that an Engine runs in, if known, and when it started.
type service struct {
	name  string
	since time.Time
}

// restart is the command with which users restart the Engine.
func (s service) restart() string {
	name := cmp.Or(s.name, "docker")
	return "sudo systemctl restart " + strings.TrimSuffix(name, ".service")
}

// snapPrefix is the prefix of the services of snaps.
const snapPrefix = "snap."

// readsFiles reports whether a container needs files of its host that are not below /home.
func readsFiles(spec domain.MemberSpec) bool {
	return spec.Kept != "" || len(spec.Files)+len(spec.Container.Configs)+len(spec.Container.Secrets) > 0 ||
		slices.ContainsFunc(spec.Mounts, func(m domain.Mount) bool {
			return m.Type != domain.MountTmpfs && m.Type != domain.MountVolume && !strings.HasPrefix(m.Source, "/home/")
		})
}

// checkFiles warns if an Engine can't give a member's container its files.
func (s service) checkFiles(problems *domain.Problems, at domain.Path, spec domain.MemberSpec) {
	if strings.HasPrefix(s.name, snapPrefix) {
		problems.Warn(at, "Docker Engine in a snap", "on host %q, Docker Engine is installed as a snap, which can't "+
			"access the host's files outside /home: role %q may not find its configs, secrets, results and mounts. "+
			"If it can't be started because a bind source path does not exist, install the package instead: sudo "+
			"snap remove docker && sudo apt-get install -y docker.io", spec.Host, spec.Role)
	}
}

// serviceOf returns a function that looks up the service of an Engine.
func serviceOf(docker *containers.Engine) func(ctx context.Context) service {
	return func(ctx context.Context) (found service) {
		systemd := &units.Manager{}
		defer systemd.Close()
		pid, err := docker.Listener(ctx)
		if err == nil {
			found.name, err = systemd.Serving(ctx, containers.Socket, pid)
		}
		if err == nil {
			found.since, _ = systemd.Since(ctx, found.name) // without it, one warning is missing
		}
		return found
	}
}

// images checks specifications with an image against a Docker Engine and its host.
type images struct {
	docker interface {
		Facts(ctx context.Context) (containers.Facts, error)
		Pulls(ctx context.Context, name string, policy domain.PullPolicy) (bool, error)
	}
	host toolkitHost
	// service returns the service that the Engine runs in.
	service func(ctx context.Context) service
}

func (i *images) check(ctx context.Context, specs []domain.MemberSpec) (problems domain.Problems) {
	away := i.await(ctx)
	runsIn := sync.OnceValue(func() service { return i.service(ctx) })
	for _, spec := range specs {
		at := domain.Path{"roles", domain.Key(spec.Role)}
		if away != nil {
			facts.NoEngine(&problems, spec, away.Error())
			continue
		}
		if readsFiles(spec) {
			runsIn().checkFiles(&problems, at.At("image"), spec)
		}
		if spec.UsesGPUs() {
			i.host.check(&problems, at.At("gpus"), spec, runsIn())
		}
		if spec.Container.PullPolicy != domain.PullNever {
			continue
		}
		if _, err := i.docker.Pulls(ctx, spec.Image, domain.PullNever); err != nil {
			problems.Add(at.At("image"), "Image missing",
				"host %q can't run role %q: %v. Load it there (sudo docker load --input FILE), or omit "+
					"container.pull_policy",

				spec.Host, spec.Role, err)
		}
	}
	return problems
}

const (
	// enginePatience is how long an Engine that refuses connections may still be starting.
	enginePatience = 5 * time.Second
	engineRetry    = 200 * time.Millisecond
)

// await returns why the Engine does not answer, or nil. The socket may exist before it accepts connections.
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

// toolkitHost is where NVIDIA's container toolkit is looked for: in the folders for programs, below a root.
type toolkitHost struct {
	root    string
	folders []string
}

// thisHost has the search path of a Docker Engine, which is a unit of systemd.
var thisHost = toolkitHost{root: "/", folders: filepath.SplitList(defaultPath)}

// check adds what keeps a Docker Engine, which runs in a service, from giving GPUs to a member.
func (h toolkitHost) check(problems *domain.Problems, at domain.Path, spec domain.MemberSpec, engine service) {
	hook := h.hook()
	if hook == nil {
		facts.NoToolkit(problems, spec, engine.restart())
		return
	}
	if !engine.since.IsZero() && installed(hook).After(engine.since) {
		problems.Warn(at, "Docker Engine older than the container toolkit", "on host %q, Docker Engine was started "+
			"before NVIDIA's container toolkit was installed or upgraded, and looks for it only at startup. "+
			"If role %q can't be started because no device driver has the capabilities [[gpu]], run %s, which stops "+
			"all containers there unless \"live-restore\" is set",
			spec.Host, spec.Role, engine.restart())
	}
}

// hook returns the file that identifies the toolkit, or nil.
func (h toolkitHost) hook() fs.FileInfo {
	for _, folder := range h.folders {
		info, err := os.Stat(filepath.Join(h.root, folder, facts.ToolkitHook))
		if err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 {
			return info
		}
	}
	return nil
}

// installed returns when a file was installed on this host: packages set files' modification times to their build time.
func installed(file fs.FileInfo) time.Time {
	if stat, ok := file.Sys().(*syscall.Stat_t); ok {
		return time.Unix(stat.Ctim.Unix())
	}
	return file.ModTime()
}
