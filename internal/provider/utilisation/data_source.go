package utilisation

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
	"github.com/trainyard/terraform-provider-trainyard/internal/prometheus"
	"github.com/trainyard/terraform-provider-trainyard/internal/provider/resourcekit"
)

// Sources of the utilisation.
const (
	sourceAgent      = "agent"
	sourcePrometheus = "prometheus"
)

const (
	// defaultWindow is the default of window.
	defaultWindow = "1m"
)

// utilisationDataSource is trainyard_utilisation.
type utilisationDataSource struct{ resourcekit.DataSource }

var (
	_ datasource.DataSourceWithConfigure      = &utilisationDataSource{}
	_ datasource.DataSourceWithValidateConfig = &utilisationDataSource{}
)

func (d *utilisationDataSource) Schema(_ context.Context, _ datasource.SchemaRequest, resp *datasource.SchemaResponse) {
	resp.Schema = Schema(d.Engines)
}

// ValidateConfig checks the attributes that depend on the source.
func (d *utilisationDataSource) ValidateConfig(
	ctx context.Context, req datasource.ValidateConfigRequest, resp *datasource.ValidateConfigResponse,
) {
	var (
		source, window types.String
		asked          types.Object
	)
	resp.Diagnostics.Append(req.Config.GetAttribute(ctx, path.Root("source"), &source)...)
	resp.Diagnostics.Append(req.Config.GetAttribute(ctx, path.Root("window"), &window)...)
	resp.Diagnostics.Append(req.Config.GetAttribute(ctx, path.Root("prometheus"), &asked)...)
	if resp.Diagnostics.HasError() || source.IsUnknown() {
		return
	}
	who, shortest, longest := resourcekit.StringOr(source, sourceAgent), engine.ShortestWindow, engine.LongestWindow
	if who == sourcePrometheus {
		shortest, longest = prometheus.ShortestWindow, prometheus.LongestWindow
	}
	refuse := func(attribute, summary, format string, args ...any) {
		resp.Diagnostics.AddAttributeError(path.Root(attribute), summary, attribute+": "+fmt.Sprintf(format, args...))
	}
	switch {
	case who == sourcePrometheus && asked.IsNull():
		refuse("prometheus", resourcekit.InvalidPrometheus, `source = %q requires prometheus = { url = "http://…" }`,
			who)
	case who != sourcePrometheus && !asked.IsNull() && !asked.IsUnknown():
		refuse("prometheus", resourcekit.InvalidPrometheus,
			"source = %q does not use Prometheus; set source = %q, or leave prometheus out", who, sourcePrometheus)
	}
	// An invalid duration is reported by the attribute's own validator.
	if d, err := time.ParseDuration(resourcekit.StringOr(window, defaultWindow)); err == nil &&
		(d < shortest || d > longest) {
		refuse("window", "Invalid window", "%q is not a valid window for source = %q; use %s to %s",
			window.ValueString(), who, shortest, longest)
	}
}

func (d *utilisationDataSource) Read(ctx context.Context, req datasource.ReadRequest, resp *datasource.ReadResponse) {
	defer resourcekit.AddDestroyRegardless(&resp.Diagnostics)
	var model Model
	if resp.Diagnostics.Append(req.Config.Get(ctx, &model)...); resp.Diagnostics.HasError() {
		return
	}
	usage := d.usage(ctx, model, &resp.Diagnostics)
	if resp.Diagnostics.HasError() {
		return
	}
	model.flatten(usage.Only(model.Filter.expand()), time.Now())
	resp.Diagnostics.Append(resp.State.Set(ctx, model)...)
}

// expected adds to the usage what should exist and was not reported.
func expected(ctx context.Context, usage engine.Usage, of engine.Store) (engine.Usage, error) {
	pools, err := engine.List[domain.GPUPoolDocument](ctx, of)
	if err != nil {
		return usage, err
	}
	groups, err := engine.List[domain.GroupDocument](ctx, of)
	if err != nil {
		return usage, err
	}
	return usage.Expected(pools, groups), nil
}

// usage reads the usage from the configured source.
func (d *utilisationDataSource) usage(ctx context.Context, model Model, diags *diag.Diagnostics) engine.Usage {
	const summary = "Unable to read the utilisation"
	key := model.Cluster.Key()
	reconciler, err := d.Session.Open(key)
	if err != nil {
		resourcekit.AddError(diags, summary, err)
		return engine.Usage{}
	}
	window, err := time.ParseDuration(resourcekit.StringOr(model.Window, defaultWindow))
	if err != nil {
		diags.AddAttributeError(path.Root("window"), resourcekit.InvalidDuration, err.Error())
		return engine.Usage{}
	}
	var usage engine.Usage
	if resourcekit.StringOr(model.Source, sourceAgent) == sourcePrometheus {
		var settings prometheus.Settings
		if settings, err = model.Prometheus.Expand(d.Session.Logins); err == nil {
			usage, err = prometheus.Usage(ctx, settings, reconciler.Engine, window)
		}
	} else {
		usage, err = reconciler.Engine.Usage(ctx, window)
	}
	if err == nil {
		usage, err = expected(ctx, usage, reconciler.Engine)
	}
	var query *prometheus.QueryError
	switch {
	case err == nil:
	case errors.As(err, &query) && query.Rejected && model.Prometheus.Queries[query.Quantity] != "":
		at := path.Root("prometheus").AtName("queries").AtMapKey(query.Quantity)
		diags.AddAttributeError(at, resourcekit.InvalidPrometheus, fmt.Sprintf("%s: %v", at, err))
	case errors.As(err, &query):
		diags.AddAttributeError(path.Root("prometheus"), summary, err.Error())
	default:
		resourcekit.AddReadError(diags, path.Root("cluster"), fmt.Sprintf("utilisation of cluster %q", key.Name), err)
	}
	return usage
}

// NewDataSource returns trainyard_utilisation for clusters of these engines.
func NewDataSource(engines []string) datasource.DataSource {
	return &utilisationDataSource{resourcekit.NewDataSource("utilisation", engines)}
}
