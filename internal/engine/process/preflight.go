//go:build linux

package process

import (
	"context"
	"maps"
	"os"

	"github.com/trainyard/terraform-provider-trainyard/internal/agent/limits"
	"github.com/trainyard/terraform-provider-trainyard/internal/agent/supervisor"
	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
)

// Preflight looks for the commands and working directories of the specifications, and reports whether their limits are
// enforced.
func (e *Engine) Preflight(_ context.Context, specs []domain.MemberSpec) (domain.Problems, error) {
	var problems domain.Problems
	limited, looked := false, map[string]bool{}
	for _, spec := range specs {
		// the command is in the image, and every other host is this machine too
		if e.contained(spec) || looked[spec.Role] {
			continue
		}
		looked[spec.Role] = true
		at := domain.Path{"roles", domain.Key(spec.Role)}
		e.checkCommand(&problems, at, spec)
		limited = limited || spec.Resources.Limits != domain.Resources{}
	}
	if limited {
		if available, reason := limits.Available(); !available {
			problems.Warn(domain.Path{"roles"}, "Limits not enforced",
				"members are placed by their resources, but this machine does not enforce them as limits: %s", reason)
		}
	}
	return problems, nil
}

func (e *Engine) checkCommand(problems *domain.Problems, at domain.Path, spec domain.MemberSpec) {
	dir := spec.WorkingDir
	if dir == "" {
		dir = e.dir.WorkDir(spec.Name)
	} else if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		problems.Add(at.At("working_dir"), "No such working directory",
			"%q is not a directory on host %q", dir, spec.Host)
		return
	}
	if len(spec.Command) == 0 {
		return // reported by [engine.Traits.CheckMember]
	}
	env := maps.Clone(e.environment())
	maps.Copy(env, spec.Env)
	if _, err := supervisor.Command(spec.Argv(), dir, env); err != nil {
		problems.Add(at.At("command"), "Command not found",
			"on host %q, %v; give the absolute path of a program on that host", spec.Host, err)
	}
}
