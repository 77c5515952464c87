package jointoken

import (
	"context"
	"fmt"

	"github.com/hashicorp/terraform-plugin-framework-validators/stringvalidator"
	"github.com/hashicorp/terraform-plugin-framework/ephemeral"
	"github.com/hashicorp/terraform-plugin-framework/ephemeral/schema"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
	"github.com/trainyard/terraform-provider-trainyard/internal/provider/resourcekit"
)

// joinTokenEphemeral is trainyard_join_token.
type joinTokenEphemeral struct {
	engines []string
	session *resourcekit.Session
}

var _ ephemeral.EphemeralResourceWithConfigure = &joinTokenEphemeral{}

// Model is the model of trainyard_join_token.
type Model struct {
	Cluster   resourcekit.ClusterRead `tfsdk:"cluster"`
	Role      types.String            `tfsdk:"role"`
	Token     types.String            `tfsdk:"token"`
	Addresses []string                `tfsdk:"addresses"`
}

func (e *joinTokenEphemeral) Metadata(
	_ context.Context, req ephemeral.MetadataRequest, resp *ephemeral.MetadataResponse,
) {
	resp.TypeName = req.ProviderTypeName + "_join_token"
}

func (e *joinTokenEphemeral) Schema(_ context.Context, _ ephemeral.SchemaRequest, resp *ephemeral.SchemaResponse) {
	resp.Schema = schema.Schema{
		MarkdownDescription: "Join token and manager addresses that a host needs to join a cluster's Swarm by " +
			"itself, for example through cloud-init: `docker swarm join --token <token> <address>`. " +
			"The token is never stored in a plan or the state. Only for `swarm` clusters. Ephemeral resources " +
			"require Terraform 1.10 or later.",
		Attributes: map[string]schema.Attribute{
			"cluster": schema.SingleNestedAttribute{
				MarkdownDescription: resourcekit.ClusterReferenceDescription,
				Required:            true,
				Attributes: map[string]schema.Attribute{
					"name": schema.StringAttribute{
						MarkdownDescription: resourcekit.ClusterNameDescription,
						Required:            true,
					},
					"engine": schema.StringAttribute{
						MarkdownDescription: resourcekit.ClusterEngineDescription,
						Optional:            true,
						Validators:          []validator.String{stringvalidator.OneOf(e.engines...)},
					},
					"endpoint": schema.StringAttribute{
						MarkdownDescription: resourcekit.ClusterEndpointDescription,
						Optional:            true,
						Validators:          []validator.String{stringvalidator.LengthAtLeast(1)},
					},
					"id": schema.StringAttribute{
						MarkdownDescription: "Set by `cluster = trainyard_cluster.lab`. It makes Terraform query a " +
							"new cluster only after it has been created.",
						Optional: true,
					},
				},
			},
			"role": schema.StringAttribute{
				MarkdownDescription: "Role of the host in the Swarm: `worker` or `manager`. Defaults to `worker`.",
				Optional:            true,
				Computed:            true,
				Validators: []validator.String{
					stringvalidator.OneOf(resourcekit.NamesOf(domain.HostRoles)...),
				},
			},
			"token": schema.StringAttribute{
				MarkdownDescription: "Join token. Anyone who has it can join the Swarm in this role.",
				Computed:            true,
				Sensitive:           true,
			},
			"addresses": schema.ListAttribute{
				MarkdownDescription: "Addresses (`host:port`) of the managers that accept hosts, the leader's first.",
				ElementType:         types.StringType,
				Computed:            true,
			},
		},
	}
}

func (e *joinTokenEphemeral) Configure(
	_ context.Context, req ephemeral.ConfigureRequest, resp *ephemeral.ConfigureResponse,
) {
	e.session = resourcekit.SessionOf(req.ProviderData, &resp.Diagnostics)
}

func (e *joinTokenEphemeral) Open(ctx context.Context, req ephemeral.OpenRequest, resp *ephemeral.OpenResponse) {
	var model Model
	if resp.Diagnostics.Append(req.Config.Get(ctx, &model)...); resp.Diagnostics.HasError() {
		return
	}
	key, role := model.Cluster.Key(), domain.HostRole(resourcekit.StringOr(model.Role, string(domain.HostWorker)))
	token, err := e.joinToken(ctx, key, role)
	if err != nil {
		resourcekit.AddReadError(&resp.Diagnostics, path.Root("cluster"),
			fmt.Sprintf("join token of cluster %q", key.Name), err)
		return
	}
	model.Role, model.Token = types.StringValue(string(role)), types.StringValue(string(token.Token))
	model.Addresses = append([]string{}, token.Managers...)
	resp.Diagnostics.Append(resp.Result.Set(ctx, model)...)
}

// joinToken returns a token for joining a stored cluster: a Swarm without its document is another cluster.
func (e *joinTokenEphemeral) joinToken(
	ctx context.Context, cluster domain.ClusterRef, role domain.HostRole,
) (engine.JoinToken, error) {
	if _, err := e.session.Document(ctx, cluster); err != nil {
		return engine.JoinToken{}, err
	}
	reconciler, err := e.session.Open(cluster)
	if err != nil {
		return engine.JoinToken{}, err
	}
	return engine.RequestJoinToken(ctx, reconciler.Engine, role)
}

// NewEphemeral returns trainyard_join_token for clusters of these engines.
func NewEphemeral(engines []string) ephemeral.EphemeralResource {
	return &joinTokenEphemeral{engines: engines}
}
