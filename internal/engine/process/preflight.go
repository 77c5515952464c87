package process

import (
	"context"
	"maps"
	"os"
	"reflect"

	"github.com/trainyard/terraform-provider-trainyard/internal/agent/limits"
	"github.com/trainyard/terraform-provider-trainyard/internal/agent/supervisor"
	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
)

// Preflight looks for the commands and working directories of the specifications, and says which of their wishes
// processes of this machine can't be granted.
func (e *Engine) Preflight(_ context.Context, specs []domain.MemberSpec) (domain.Problems, error) {
	var problems domain.Problems
	limited := false
	for _, spec := range specs {
		at := domain.Path{"roles", domain.Key(spec.Role)}
		if spec.Image != "" {
			problems.Warn(at.At("image"), "Image not used", "the engine \"process\" runs programs of this machine; image %q has no effect with it", spec.Image)
		}
		for i, mount := range spec.Mounts {
			if mount.ReadOnly {
				problems.Warn(at.At("mounts", i, "read_only"), "Mount not read-only", "the engine \"process\" can't keep members of this machine's user from writing to %q", mount.Target)
			}
			if mount.Type != "" && mount.Type != domain.MountBind {
				problems.Add(at.At("mounts", i, "type"), "Mount not possible", "the engine \"process\" takes mounts of type %q alone; %q is for engines that run containers", domain.MountBind, mount.Type)
			} else if mount.Source != mount.Target {
				problems.Add(at.At("mounts", i), "Mount not possible",
					"the engine \"process\" can't show %q as %q: its members see the files of this machine where they are; use the same path for source and target", mount.Source, mount.Target)
			}
		}
		checkContainer(&problems, at.At("container"), spec.Container)
		e.checkCommand(&problems, at, spec)
		limited = limited || spec.Limits != domain.Resources{}
	}
	if limited {
		if available, reason := limits.Available(); !available {
			problems.Warn(domain.Path{"roles"}, "Limits not enforced",
				"members are placed by their resources, but on this machine nothing keeps them from using more: %s", reason)
		}
	}
	return problems, nil
}

// checkContainer refuses what a member would look for in vain, and says what else has no effect.
func checkContainer(problems *domain.Problems, at domain.Path, c domain.Container) {
	for _, files := range []struct {
		attribute string
		number    int
	}{{"configs", len(c.Configs)}, {"secrets", len(c.Secrets)}} {
		if files.number > 0 {
			problems.Add(at.At(files.attribute), "Not for this engine", "the engine \"process\" runs no containers, and its members would look for their %s in vain; use the engine \"swarm\", or leave them out", files.attribute)
		}
	}
	c.Configs, c.Secrets = nil, nil
	if !reflect.ValueOf(c).IsZero() {
		problems.Warn(at, "Container settings not used", "the engine \"process\" runs no containers; these settings have no effect with it")
	}
}

func (e *Engine) checkCommand(problems *domain.Problems, at domain.Path, spec domain.MemberSpec) {
	dir := spec.WorkingDir
	if dir == "" {
		dir = e.dir.WorkDir(spec.Name)
	} else if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		problems.Add(at.At("working_dir"), "No such working directory", "%q is no folder on host %q", dir, spec.Host)
		return
	}
	if len(spec.Command) == 0 {
		problems.Add(at.At("command"), "Missing command", "the engine \"process\" does not run images: role %q needs a command", spec.Role)
		return
	}
	env := baseEnvironment()
	maps.Copy(env, spec.Env)
	if _, err := supervisor.Command(spec.Argv(), dir, env); err != nil {
		problems.Add(at.At("command"), "Command not found", "on host %q, %v; give the absolute path of a program that is there", spec.Host, err)
	}
}
