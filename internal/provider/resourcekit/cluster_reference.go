package resourcekit

import (
	"fmt"

	"github.com/hashicorp/terraform-plugin-framework-validators/stringvalidator"
	datasource "github.com/hashicorp/terraform-plugin-framework/datasource/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/planmodifier"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/stringdefault"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/stringplanmodifier"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
)

// ClusterReference is how a resource refers to its cluster: the smallest part of trainyard_cluster that reaches it.
type ClusterReference struct {
	Name     types.String `tfsdk:"name"`
	Engine   types.String `tfsdk:"engine"`
	Endpoint types.String `tfsdk:"endpoint"`
}

// Key returns the reference as the domain's type.
func (c ClusterReference) Key() domain.ClusterRef { return KeyOf(c.Name, c.Engine, c.Endpoint) }

// Meaning returns the name: the domain knows which cluster something belongs to, but not how that is reached.
func (c ClusterReference) Meaning() any { return c.Name.ValueString() }

// Spelled returns a reference to a cluster of this name that is reached the same way.
func (c ClusterReference) Spelled(name any) any {
	c.Name, c.Engine = types.StringValue(fmt.Sprint(name)), types.StringValue(c.Key().Engine)
	return c
}

// KeyOf returns a reference to a cluster, with the default engine if none is named.
func KeyOf(name, engine, endpoint types.String) domain.ClusterRef {
	key := domain.ClusterRef{Name: name.ValueString(), Engine: engine.ValueString(), Endpoint: endpoint.ValueString()}
	if key.Engine == "" {
		key.Engine = DefaultEngine
	}
	return key
}

// ClusterID identifies a cluster, wherever it is reached.
type ClusterID struct{ Engine, Name string }

// IDOf returns the identity of a cluster.
func IDOf(ref domain.ClusterRef) ClusterID { return ClusterID{ref.Engine, ref.Name} }

// Descriptions of the parts of a reference, for schemas that don't use the attributes below.
const (
	ClusterReferenceDescription = "The cluster: `cluster = trainyard_cluster.lab`. Or an object with `name`, " +
		"`engine` and `endpoint`."
	ClusterNameDescription   = "Name of the cluster."
	ClusterEngineDescription = "Engine of the cluster: `process`, `swarm` or `systemd`. Defaults to `" +
		DefaultEngine + "`."
	ClusterEndpointDescription = "Address of the cluster's engine. For `swarm`, a manager: `unix://`, `tcp://` or " +
		"`ssh://`; defaults to the Docker Engine that the `docker` command uses. For `systemd`, one of the hosts: " +
		"`ssh://`; required."
)

// ClusterReferenceAttribute is the attribute by which a resource refers to its cluster.
func ClusterReferenceAttribute(engines []string) schema.Attribute {
	return schema.SingleNestedAttribute{
		MarkdownDescription: ClusterReferenceDescription + " Changing the cluster forces replacement.",
		Required:            true,
		Attributes: map[string]schema.Attribute{
			"name": schema.StringAttribute{
				MarkdownDescription: ClusterNameDescription + " Forces replacement.",
				Required:            true,
				PlanModifiers:       []planmodifier.String{stringplanmodifier.RequiresReplace()},
			},
			"engine": schema.StringAttribute{
				MarkdownDescription: ClusterEngineDescription + " Forces replacement.",
				Optional:            true,
				Computed:            true,
				Default:             stringdefault.StaticString(DefaultEngine),
				Validators:          []validator.String{stringvalidator.OneOf(engines...)},
				PlanModifiers:       []planmodifier.String{stringplanmodifier.RequiresReplace()},
			},
			"endpoint": schema.StringAttribute{
				MarkdownDescription: ClusterEndpointDescription + " A change only affects how the cluster is reached.",
				Optional:            true,
				Validators:          []validator.String{stringvalidator.LengthAtLeast(1)},
			},
		},
	}
}

// ClusterRead is how a data source refers to a cluster. The id makes Terraform wait: it is unknown until a new cluster
// is created, so that the data source is read after that.
type ClusterRead struct {
	ClusterReference
	ID types.String `tfsdk:"id"`
}

// ClusterReadAttribute is the attribute by which a data source refers to a cluster.
func ClusterReadAttribute(engines []string) datasource.Attribute {
	return datasource.SingleNestedAttribute{
		MarkdownDescription: ClusterReferenceDescription,
		Required:            true,
		Attributes: map[string]datasource.Attribute{
			"name": datasource.StringAttribute{
				MarkdownDescription: ClusterNameDescription,
				Required:            true,
			},
			"engine": datasource.StringAttribute{
				MarkdownDescription: ClusterEngineDescription,
				Optional:            true,
				Validators:          []validator.String{stringvalidator.OneOf(engines...)},
			},
			"endpoint": datasource.StringAttribute{
				MarkdownDescription: ClusterEndpointDescription,
				Optional:            true,
				Validators:          []validator.String{stringvalidator.LengthAtLeast(1)},
			},
			"id": datasource.StringAttribute{
				MarkdownDescription: "Set by `cluster = trainyard_cluster.lab`. It makes Terraform read a new " +
					"cluster only after it has been created.",
				Optional: true,
			},
		},
	}
}
