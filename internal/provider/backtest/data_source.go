package backtest

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"

	"github.com/trainyard/terraform-provider-trainyard/internal/autoscale"
	"github.com/trainyard/terraform-provider-trainyard/internal/provider/resourcekit"
)

// policyBacktestDataSource is trainyard_policy_backtest.
type policyBacktestDataSource struct{ resourcekit.DataSource }

var (
	_ datasource.DataSourceWithConfigure      = &policyBacktestDataSource{}
	_ datasource.DataSourceWithValidateConfig = &policyBacktestDataSource{}
)

func (d *policyBacktestDataSource) Schema(
	_ context.Context, _ datasource.SchemaRequest, resp *datasource.SchemaResponse,
) {
	resp.Schema = Schema()
}

// ValidateConfig checks policy, trace and model, each if it is known.
func (d *policyBacktestDataSource) ValidateConfig(
	ctx context.Context, req datasource.ValidateConfigRequest, resp *datasource.ValidateConfigResponse,
) {
	// known reads an attribute if all parts of it are known. The attribute's own validators report values
	// that don't fit the model.
	known := func(attribute string, target any, others ...string) bool {
		return resourcekit.SettledAttributes(req.Config.Raw, others...) &&
			!req.Config.GetAttribute(ctx, path.Root(attribute), target).HasError()
	}
	var config Model
	if known("policy", &config.Policy, "trace", "model") {
		var diags diag.Diagnostics // reported by validators as well
		if policy := config.Policy.expand(&diags); !diags.HasError() {
			resourcekit.AddProblems(&resp.Diagnostics, config.Policy.problems(policy))
		}
	}
	if known("trace", &config.Trace, "policy", "model") {
		_, problems := config.Trace.expand()
		resourcekit.AddProblems(&resp.Diagnostics, problems)
	}
	if known("model", &config.Model, "policy", "trace") {
		_, problems := config.Model.expand(nil)
		resourcekit.AddProblems(&resp.Diagnostics, problems)
	}
}

// Read checks everything again, for errors that involve both policy and trace. Warnings were reported before.
func (d *policyBacktestDataSource) Read(
	ctx context.Context, req datasource.ReadRequest, resp *datasource.ReadResponse,
) {
	defer resourcekit.AddDestroyRegardless(&resp.Diagnostics)
	var config Model
	if resp.Diagnostics.Append(req.Config.Get(ctx, &config)...); resp.Diagnostics.HasError() {
		return
	}
	policy, trace, model, problems := config.expand(ctx, d.Session.Logins, &resp.Diagnostics)
	if resp.Diagnostics.HasError() {
		return
	}
	const summary = "Unable to test the policy"
	if err := problems.Err(); err != nil {
		resourcekit.AddError(&resp.Diagnostics, summary, err)
		return
	}
	course, err := autoscale.Backtest(policy, trace, model)
	if err != nil {
		resourcekit.AddError(&resp.Diagnostics, summary, err)
		return
	}
	config.flatten(course, trace, model)
	resp.Diagnostics.Append(resp.State.Set(ctx, config)...)
}

// NewDataSource returns trainyard_policy_backtest.
func NewDataSource() datasource.DataSource {
	return &policyBacktestDataSource{resourcekit.NewDataSource("policy_backtest", nil)}
}
