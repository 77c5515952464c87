package logs

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/hashicorp/terraform-plugin-framework-validators/int64validator"
	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/datasource/schema"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/trainyard/terraform-provider-trainyard/internal/bounded"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
	"github.com/trainyard/terraform-provider-trainyard/internal/provider/resourcekit"
)

// defaultTail is the default of tail.
const defaultTail = 100

// logsDataSource is trainyard_logs.
type logsDataSource struct{ resourcekit.DataSource }

var _ datasource.DataSourceWithConfigure = &logsDataSource{}

// Model is the model of trainyard_logs.
type Model struct {
	Cluster resourcekit.ClusterRead `tfsdk:"cluster"`
	Member  types.String            `tfsdk:"member"`
	Tail    types.Int64             `tfsdk:"tail"`
	Since   types.String            `tfsdk:"since"`
	Lines   []string                `tfsdk:"lines"`
}

func (d *logsDataSource) Schema(_ context.Context, _ datasource.SchemaRequest, resp *datasource.SchemaResponse) {
	resp.Schema = schema.Schema{
		MarkdownDescription: "The last lines that a member wrote to standard output and standard error.\n\n" +
			"The lines are stored in the state in plain text. If they may contain secrets, pass them on as " +
			"`sensitive(data.trainyard_logs.<name>.lines)`, " +
			"so that they are not shown, and protect the state; or don't use this data source.",
		Attributes: map[string]schema.Attribute{
			"cluster": resourcekit.ClusterReadAttribute(d.Engines),
			"member": schema.StringAttribute{
				MarkdownDescription: "Name of the member: `<group>-<role>-<index>`, or `<sweep>-<key>-0` for a run " +
					"of a sweep. The last lines of a run that has ended are kept.",
				Required: true,
			},
			"tail": schema.Int64Attribute{
				MarkdownDescription: "Number of lines from the end, 1 or more; 0 means all that are kept, up to 32 " +
					"MiB. Lines are truncated at 256 KiB. Defaults to 100.",
				Optional:   true,
				Validators: []validator.Int64{int64validator.AtLeast(0)},
			},
			"since": schema.StringAttribute{
				MarkdownDescription: "Omits lines written before this: a time in RFC 3339, such as " +
					"`2026-01-31T12:00:00Z`, or a duration back from now, such as `15m`. Accurate to about a second. " +
					"Defaults to none.",
				Optional: true,
			},
			"lines": schema.ListAttribute{
				MarkdownDescription: "The lines, oldest first.",
				ElementType:         types.StringType,
				Computed:            true,
			},
		},
	}
}

func (d *logsDataSource) Read(ctx context.Context, req datasource.ReadRequest, resp *datasource.ReadResponse) {
	defer resourcekit.AddDestroyRegardless(&resp.Diagnostics)
	var model Model
	if resp.Diagnostics.Append(req.Config.Get(ctx, &model)...); resp.Diagnostics.HasError() {
		return
	}
	options := engine.LogOptions{Tail: defaultTail}
	if !model.Tail.IsNull() {
		options.Tail = int(model.Tail.ValueInt64())
	}
	if !model.Since.IsNull() {
		since, err := resourcekit.ParseSince(model.Since.ValueString(), time.Now())
		if err != nil {
			resp.Diagnostics.AddAttributeError(path.Root("since"), "Invalid time", err.Error())
			return
		}
		options.Since = since
	}
	key, member := model.Cluster.Key(), model.Member.ValueString()
	reconciler, err := d.Session.Open(key)
	if err != nil {
		resourcekit.AddError(&resp.Diagnostics, "Unable to read the logs", err)
		return
	}
	lines, err := reconciler.Logs(ctx, member, options)
	if _, tooMuch := errors.AsType[*bounded.Error](err); tooMuch {
		resp.Diagnostics.AddAttributeError(path.Root("tail"), "Log too long",
			err.Error()+"; read fewer lines (tail), or only later ones (since)")
		return
	}
	if err != nil {
		resourcekit.AddReadError(&resp.Diagnostics, path.Root("member"),
			fmt.Sprintf("log of member %q in cluster %q", member, key.Name), err)
		return
	}
	model.Lines = append([]string{}, lines...)
	resp.Diagnostics.Append(resp.State.Set(ctx, model)...)
}

// NewDataSource returns trainyard_logs for clusters of these engines.
func NewDataSource(engines []string) datasource.DataSource {
	return &logsDataSource{resourcekit.NewDataSource("logs", engines)}
}
