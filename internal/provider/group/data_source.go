package group

import (
	"context"
	"fmt"

	"github.com/hashicorp/terraform-plugin-framework-timetypes/timetypes"
	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/datasource/schema"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/provider/resourcekit"
)

// groupDataSource is trainyard_group.
type groupDataSource struct{ resourcekit.DataSource }

var _ datasource.DataSourceWithConfigure = &groupDataSource{}

type dataModel struct {
	ID        types.String               `tfsdk:"id"`
	Cluster   resourcekit.ClusterRead    `tfsdk:"cluster"`
	Name      types.String               `tfsdk:"name"`
	Framework types.String               `tfsdk:"framework"`
	Phase     types.String               `tfsdk:"phase"`
	Reason    *string                    `tfsdk:"reason"`
	Revision  types.Int64                `tfsdk:"revision"`
	Restarts  types.Int64                `tfsdk:"restarts"`
	Members   map[string]memberDataModel `tfsdk:"members"`
}

type memberDataModel struct {
	Role       string            `tfsdk:"role"`
	Index      int64             `tfsdk:"index"`
	Host       string            `tfsdk:"host"`
	GPUs       []string          `tfsdk:"gpus"`
	Address    string            `tfsdk:"address"`
	State      string            `tfsdk:"state"`
	Restarts   int64             `tfsdk:"restarts"`
	ExitCode   *int64            `tfsdk:"exit_code"`
	StartedAt  timetypes.RFC3339 `tfsdk:"started_at"`
	FinishedAt timetypes.RFC3339 `tfsdk:"finished_at"`
	LastError  *string           `tfsdk:"last_error"`
}

func (d *groupDataSource) Schema(_ context.Context, _ datasource.SchemaRequest, resp *datasource.SchemaResponse) {
	resp.Schema = schema.Schema{
		MarkdownDescription: "The current state of a group: its phase, and the state of each member. Everything that " +
			"changes by itself is here rather than in the resource.",
		Attributes: map[string]schema.Attribute{
			"id": schema.StringAttribute{
				MarkdownDescription: "`<cluster>/<group>`.",
				Computed:            true,
			},
			"cluster": resourcekit.ClusterReadAttribute(d.Engines),
			"name": schema.StringAttribute{
				MarkdownDescription: "Name of the group.",
				Required:            true,
			},
			"framework": schema.StringAttribute{
				MarkdownDescription: "Framework of the group.",
				Computed:            true,
			},
			"phase": schema.StringAttribute{
				MarkdownDescription: "`pending` (members are waiting to start), `running` (every member runs, or has " +
					"completed), `degraded` (the group continues, but a member is missing, stopped, failed or " +
					"between two attempts, or has a problem with its host or one of its GPUs), `completed`, or " +
					"`failed` (the group can no longer complete).",
				Computed: true,
			},
			"reason": schema.StringAttribute{
				MarkdownDescription: "Why the group is degraded or failed, with the members' names; null in " +
					"other phases.",
				Computed: true,
			},
			"revision": schema.Int64Attribute{
				MarkdownDescription: "Number of times the group's document was written. It rises by two with each " +
					"apply that changes the group, and by one with each restart of the whole group.",
				Computed: true,
			},
			"restarts": schema.Int64Attribute{
				MarkdownDescription: "Number of restarts of the whole group since it was last applied or rerun, if " +
					"its `restart_scope` is `group`.",
				Computed: true,
			},
			"members": schema.MapNestedAttribute{
				MarkdownDescription: "Existing members, by name.",
				Computed:            true,
				NestedObject:        schema.NestedAttributeObject{Attributes: memberDataAttributes()},
			},
		},
	}
}

func memberDataAttributes() map[string]schema.Attribute {
	text := func(description string) schema.Attribute {
		return schema.StringAttribute{MarkdownDescription: description, Computed: true}
	}
	number := func(description string) schema.Attribute {
		return schema.Int64Attribute{MarkdownDescription: description, Computed: true}
	}
	moment := func(description string) schema.Attribute {
		return schema.StringAttribute{
			MarkdownDescription: description + " in RFC 3339, UTC.", CustomType: timetypes.RFC3339Type{},
			Computed: true,
		}
	}
	return map[string]schema.Attribute{
		"role":  text("Role of the member."),
		"index": number("Index of the member in its role, from 0."),
		"host":  text("Name of the member's host."),
		"gpus": schema.ListAttribute{
			MarkdownDescription: "UUIDs of the GPUs allocated to the member; empty if it has none.",
			ElementType:         types.StringType,
			Computed:            true,
		},
		"address": text("Address of the member, `host:port`."),
		"state": text("`pending`, `running`, `restarting`, `completed`, `failed`, or `stopped` (ended on " +
			"request, such as parameter servers when the group has completed)."),
		"restarts": number(
			"Number of times the member was restarted on its own since an apply or a restart of the whole group " +
				"started it.",
		),
		"exit_code": number("Exit code of the last instance that ended; 128 + the signal's number if a signal " +
			"killed it; null if none has ended yet."),
		"started_at":  moment("Start of the last instance; null if there was none. A time"),
		"finished_at": moment("End of the last instance; null while it runs, or if there was none. A time"),
		"last_error": text("Why the last instance that ended failed or could not be started; null if it did not " +
			"fail, or if none has ended yet."),
	}
}

func (d *groupDataSource) Read(ctx context.Context, req datasource.ReadRequest, resp *datasource.ReadResponse) {
	defer resourcekit.AddDestroyRegardless(&resp.Diagnostics)
	var model dataModel
	if resp.Diagnostics.Append(req.Config.Get(ctx, &model)...); resp.Diagnostics.HasError() {
		return
	}
	key, name := model.Cluster.Key(), model.Name.ValueString()
	reconciler, err := d.Session.Open(key)
	if err != nil {
		resourcekit.AddError(&resp.Diagnostics, "Unable to read the group", err)
		return
	}
	group, err := reconciler.Read(ctx, name)
	if err != nil {
		resourcekit.AddReadError(&resp.Diagnostics, path.Root("name"),
			fmt.Sprintf("group %q in cluster %q", name, key.Name), err)
		return
	}
	model.ID = types.StringValue(domain.GroupID(key.Name, name))
	model.Framework = types.StringValue(group.Document.Spec.Framework)
	model.Phase = types.StringValue(string(group.Progress.Phase))
	model.Reason = resourcekit.OrNull(group.Progress.Reason)
	model.Revision = types.Int64Value(int64(group.Document.Revision))
	model.Restarts = types.Int64Value(int64(group.Document.GroupRestarts))
	model.Members = make(map[string]memberDataModel, len(group.Observed))
	for _, o := range group.Observed {
		model.Members[o.Name] = memberDataModel{
			Role:       o.Role,
			Index:      int64(o.Index),
			Host:       o.Host,
			GPUs:       append([]string{}, group.Document.Assignments[o.Name].GPUs.UUIDs()...),
			Address:    o.Address,
			State:      string(o.State),
			Restarts:   int64(o.Restarts),
			ExitCode:   resourcekit.Integer[int64](o.ExitCode),
			StartedAt:  resourcekit.Moment(o.StartedAt),
			FinishedAt: resourcekit.Moment(o.FinishedAt),
			LastError:  resourcekit.OrNull(o.LastError),
		}
	}
	resp.Diagnostics.Append(resp.State.Set(ctx, model)...)
}

// NewDataSource returns trainyard_group for clusters of these engines.
func NewDataSource(engines []string) datasource.DataSource {
	return &groupDataSource{resourcekit.NewDataSource("group", engines)}
}
