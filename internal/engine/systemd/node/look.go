//go:build linux

package node

import (
	"context"
	"errors"
	"slices"

	"github.com/trainyard/terraform-provider-trainyard/internal/agent/telemetry"
	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/systemd/relay"
)

// planned lists the kinds whose items plans read in full; the cluster's item comes with the ledger. If there are
// sweeps, plans also read those of plannedSweeps.
var (
	planned = []domain.Kind{
		domain.GroupKind, domain.GPUPoolKind, domain.PolicyKind, domain.SilentGuardsKind, domain.SweepKind,
		domain.FilesKind,
	}
	plannedSweeps = []domain.Kind{domain.SweepRunsKind, domain.SweepRecordKind, domain.SweepParallelismKind}
)

// looks returns the questions that plans ask this host: about the store, if this host has it, and about what is on the
// host. The agent is included if there are GPU pools.
func (n *Node) looks(ctx context.Context, cluster string) ([]relay.Question, error) {
	p, err := n.joined(cluster)
	if err != nil {
		return nil, err
	}
	ledger, err := p.ledger()
	if err != nil {
		return nil, err
	}
	pools, err := p.List(ctx, domain.GPUPoolKind)
	if err != nil {
		return nil, err
	}
	sweeps, err := p.List(ctx, domain.SweepKind)
	if err != nil {
		return nil, err
	}
	var questions []relay.Question
	var failed []error
	add := func(q relay.Question, err error) {
		questions, failed = append(questions, q), append(failed, err)
	}
	add(relay.Locate.Of(relay.None{}))
	add(relay.ReadLedger.Of(relay.None{}))
	add(relay.Observe.Of(""))
	add(relay.Residents.Of(relay.None{}))
	add(relay.FindFiles.Of(relay.None{}))
	add(relay.Ports.Of(relay.None{}))
	if len(pools) > 0 {
		add(relay.Report.Of(telemetry.Query{}))
	}
	if ledger.Host != ledger.Store {
		return questions, errors.Join(failed...)
	}
	kinds := planned
	if len(sweeps) > 0 {
		kinds = slices.Concat(planned, plannedSweeps)
	}
	for _, kind := range kinds {
		add(relay.List.Of(kind))
	}
	add(relay.Get.Of(relay.AbsentKey))
	return questions, errors.Join(failed...)
}
