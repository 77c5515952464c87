//go:build linux

package supervisor

import (
	"fmt"
	"log/slog"

	"github.com/trainyard/terraform-provider-trainyard/internal/agent/limits"
	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
)

// limited is the resource group of an instance, if it has one.
type limited struct {
	group  *limits.Group
	memory int64
}

// limit creates a resource group for an instance with limits, if this machine supports it. If not, the plan has said
// so.
func limit(spec domain.MemberSpec, id string) (limited, error) {
	if spec.Resources.Limits == (domain.Resources{}) {
		return limited{}, nil
	}
	if available, _ := limits.Available(); !available {
		return limited{}, nil
	}
	group, err := limits.Create(limitsName(spec, id), spec.Resources.Limits.CPUs, spec.Resources.Limits.MemoryMiB)
	return limited{group, spec.Resources.Limits.MemoryMiB}, err
}

// reopenLimits finds the resource group that a predecessor created.
func reopenLimits(spec domain.MemberSpec, id string) limited {
	if spec.Resources.Limits == (domain.Resources{}) {
		return limited{}
	}
	group, err := limits.Open(limitsName(spec, id))
	if err != nil {
		return limited{}
	}
	return limited{group, spec.Resources.Limits.MemoryMiB}
}

func limitsName(spec domain.MemberSpec, id string) string { return spec.Name + "-" + id }

func (l limited) joinFiles() []string {
	if l.group == nil {
		return nil
	}
	return l.group.JoinFiles()
}

// raise changes the limits of a running instance, if it has any.
func (l *limited) raise(to domain.Resources) error {
	if l.group == nil {
		return nil
	}
	if err := l.group.Raise(to.CPUs, to.MemoryMiB); err != nil {
		return err
	}
	l.memory = max(l.memory, to.MemoryMiB)
	return nil
}

// starved reports whether processes of the instance were killed because of lack of memory, and whether its own limit
// may have been the cause.
func (l limited) starved() (killed, full bool) {
	if l.group == nil {
		return false, false
	}
	kills, err := l.group.OOMKills()
	return err == nil && kills > 0, l.group.Full()
}

// outOfMemory notes that an instance ran out of memory: of its limit, if it has one and that may have been the cause.
func (r *result) outOfMemory(limitMiB int64, full bool) {
	if limitMiB == 0 || !full {
		r.note = "out of memory: the host had no memory left"
		return
	}
	r.outOf, r.note = limitMiB, fmt.Sprintf("out of memory: its limit is %d MiB", limitMiB)
}

func (l limited) delete(log *slog.Logger) {
	if l.group == nil {
		return
	}
	if err := l.group.Delete(); err != nil {
		log.Warn("can't delete a control group", "error", err)
	}
}
