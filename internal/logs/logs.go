// Package logs is the command "logs", which prints the logs of a group's members, and exits as the group did.
//
// What it finds about a group (follow.go) becomes a verdict (verdict.go). Which group that is can be taken from a plan
// (plan.go).
package logs

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/trainyard/terraform-provider-trainyard/internal/command"
	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
	"github.com/trainyard/terraform-provider-trainyard/internal/printable"
)

// Run writes the logs that the arguments ask for. A failed group is a [command.ExitError].
func Run(ctx context.Context, args []string, engines engine.Registry, in io.Reader, out io.Writer) error {
	o, err := parse(args, engines)
	if errors.Is(err, flag.ErrHelp) {
		return nil
	}
	if err != nil {
		return err
	}
	f := &follower{
		options: o, target: target{group: o.name}, out: out, warnings: os.Stderr, places: map[string]engine.LogPlace{},
	}
	if o.plan != "" {
		err = f.openPlanned(engines, in)
	} else {
		_, f.engine, err = o.cluster.Find(ctx, engines)
	}
	if err != nil {
		return err
	}
	if o.follow {
		err = f.run(ctx)
	} else if o.plan != "" {
		named := fmt.Sprintf("group %s of cluster %s", f.group, f.target.cluster.Name)
		_, err = io.WriteString(out, printable.Line(named)+"\n")
	} else if _, err = f.look(ctx); isExit(err) {
		err = nil // not a failure for somebody who only watches
	}
	if errors.Is(err, engine.ErrNotFound) {
		return f.unknown(ctx, err)
	}
	return err
}

func isExit(err error) bool {
	_, is := errors.AsType[*command.ExitError](err)
	return is
}

// openPlanned opens the cluster of a plan, which may not exist yet.
func (f *follower) openPlanned(engines engine.Registry, in io.Reader) (err error) {
	if f.plan != "-" {
		file, err := os.Open(f.plan)
		if err != nil {
			return fmt.Errorf("--plan: %w", err)
		}
		defer file.Close()
		in = file
	}
	if f.target, err = targetOf(in, f.name, engines); err != nil {
		return err
	}
	for _, member := range f.members {
		if !strings.HasPrefix(member, f.group+"-") {
			return fmt.Errorf("--member %q is not in the plan's group %q", member, f.group)
		}
	}
	f.engine, err = engines.Open(f.target.cluster, f.options.cluster.Settings())
	return err
}

// unknown adds the existing groups to the error for a missing one.
func (f *follower) unknown(ctx context.Context, err error) error {
	groups, listed := engine.List[domain.GroupDocument](ctx, f.engine)
	if listed != nil || groups[f.group].Spec.Name != "" {
		return err
	}
	return fmt.Errorf("group %q not found; the groups are %q", f.group, slices.Sorted(maps.Keys(groups)))
}
