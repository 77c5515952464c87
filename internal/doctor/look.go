package doctor

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/trainyard/terraform-provider-trainyard/internal/engine/systemd"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/systemd/facts"
)

const (
	// atOnce is how many hosts are looked at at the same time.
	atOnce = 16
	// patience is how long one host may take after the login.
	patience = 2 * time.Minute
)

// target is a host that is to be examined.
type target struct {
	// address is as it was given; "" for this machine.
	address string
	host    facts.Runner
}

// look returns what is known of a host.
func (t target) look(ctx context.Context, programs map[string]systemd.Needs, engines []string) (Host, error) {
	host := Host{Engines: engines}
	release, err := t.host.Hold(ctx)
	if err != nil {
		return host, err
	}
	defer release()
	ctx, stop := context.WithTimeoutCause(ctx, patience,
		fmt.Errorf("collecting facts about the host timed out after %s", patience))
	defer stop()
	if host.Facts, err = facts.Read(ctx, t.host); err != nil {
		return host, err
	}
	become := ""
	if host.Root {
		become = host.AsRoot()
	}
	output, err := t.host.RunInput(ctx, strings.TrimSpace("sh -s "+become), strings.NewReader(script))
	if err == nil {
		host.Details, err = parse(output)
	}
	host.judge(programs)
	return host, err
}

// judge compares the host with what it would be brought.
func (h *Host) judge(programs map[string]systemd.Needs) {
	var architectures []string
	for architecture := range programs {
		architectures = append(architectures, architecture)
	}
	h.Lacks = h.Judge(architectures)
	needs, known := programs[h.Architecture]
	h.Here = Programs{
		Platform: runtime.GOOS + "/" + runtime.GOARCH, Known: known,
		Program: needs.ForProgram, HasAgent: needs.Agent != "", Agent: needs.ForAgent,
	}
}

// examineAll examines hosts, some at a time, and returns a report of each in their order.
func examineAll(
	ctx context.Context, targets []target, programs map[string]systemd.Needs, engines []string,
) []HostReport {
	reports := make([]HostReport, len(targets))
	var all errgroup.Group
	all.SetLimit(atOnce)
	for i, t := range targets {
		all.Go(func() error {
			host, err := t.look(ctx, programs, engines)
			reports[i] = reportOf(t.address, host, err)
			return nil
		})
	}
	_ = all.Wait() // what failed is in the reports
	return reports
}
