package history

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/path"

	"github.com/trainyard/terraform-provider-trainyard/internal/autoscale"
	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
	"github.com/trainyard/terraform-provider-trainyard/internal/provider/resourcekit"
)

// scalingHistoryDataSource is trainyard_scaling_history.
type scalingHistoryDataSource struct{ resourcekit.DataSource }

var _ datasource.DataSourceWithConfigure = &scalingHistoryDataSource{}

func (d *scalingHistoryDataSource) Schema(
	_ context.Context, _ datasource.SchemaRequest, resp *datasource.SchemaResponse,
) {
	resp.Schema = Schema(d.Engines)
}

func (d *scalingHistoryDataSource) Read(
	ctx context.Context, req datasource.ReadRequest, resp *datasource.ReadResponse,
) {
	defer resourcekit.AddDestroyRegardless(&resp.Diagnostics)
	var model Model
	if resp.Diagnostics.Append(req.Config.Get(ctx, &model)...); resp.Diagnostics.HasError() {
		return
	}
	now := time.Now()
	selection, err := model.selection(now)
	if err != nil {
		resp.Diagnostics.AddAttributeError(path.Root("since"), "Invalid time", err.Error())
		return
	}
	const summary = "Unable to read the scaling history"
	key := model.Cluster.Key()
	reconciler, err := d.Session.Open(key)
	if err != nil {
		resourcekit.AddError(&resp.Diagnostics, summary, err)
		return
	}
	// A missing cluster has no records, which would look like one where nothing was scaled yet.
	_, err = engine.Cluster(ctx, reconciler.Engine)
	var stored map[string][]byte
	if err == nil {
		stored, err = engine.Contents(ctx, reconciler.Engine, autoscale.HistoryKind)
	}
	if err != nil {
		resourcekit.AddReadError(&resp.Diagnostics, path.Root("cluster"),
			fmt.Sprintf("history of cluster %q", key.Name), err)
		return
	}
	entries, unread := autoscale.ReadHistory(stored, now, selection)
	if unread != nil {
		resp.Diagnostics.AddAttributeWarning(path.Root("cluster"), "Scaling history incomplete",
			fmt.Sprintf("cluster: some of the history of cluster %q can't be read and is left out:\n\n%v", key.Name,
				unread))
	}
	silent, err := engine.List[domain.SilentGuardsDocument](ctx, reconciler.Engine)
	if err != nil {
		resourcekit.AddError(&resp.Diagnostics, summary, err)
		return
	}
	for _, policy := range slices.Sorted(maps.Keys(silent)) {
		for _, g := range silent[policy].Guards {
			if selection.Covers(policy) {
				resp.Diagnostics.AddAttributeWarning(path.Root("cluster"), "A guard has never had a value",
					fmt.Sprintf("cluster: guard %s of the autoscaling policy %s: %s", g.Name, policy, g))
			}
		}
	}
	if err := model.flatten(entries); err != nil {
		resourcekit.AddError(&resp.Diagnostics, summary, err)
		return
	}
	resp.Diagnostics.Append(resp.State.Set(ctx, model)...)
}

// NewDataSource returns trainyard_scaling_history for clusters of these engines.
func NewDataSource(engines []string) datasource.DataSource {
	return &scalingHistoryDataSource{resourcekit.NewDataSource("scaling_history", engines)}
}
