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

// ClusterReference is how a group refers to its cluster: the smallest part of the resource that reaches it.
type ClusterReference struct {
	Name     types.String `tfsdk:"name"`
	Engine   types.String `tfsdk:"engine"`
	Endpoint types.String `tfsdk:"endpoint"`
}

// Key returns the reference as the domain knows it.
func (c ClusterReference) Key() domain.ClusterRef { return KeyOf(c.Name, c.Engine, c.Endpoint) }

// Meaning returns the name: the domain knows in which cluster a thing is, and not how that is reached.
func (c ClusterReference) Meaning() any { return c.Name.ValueString() }

// Spelled returns the reference to a cluster of another name that is reached in the same way.
func (c ClusterReference) Spelled(name any) any {
	c.Name, c.Engine = types.StringValue(fmt.Sprint(name)), types.StringValue(c.Key().Engine)
	return c
}

// KeyOf returns a reference to a cluster, of the default engine where it names none.
func KeyOf(name, engine, endpoint types.String) domain.ClusterRef {
	key := domain.ClusterRef{Name: name.ValueString(), Engine: engine.ValueString(), Endpoint: endpoint.ValueString()}
	if key.Engine == "" {
		key.Engine = DefaultEngine
	}
	return key
}

// ClusterID is what tells a cluster from all others, wherever it is reached.
type ClusterID struct{ Engine, Name string }

// IDOf returns what tells a cluster from all others.
func IDOf(ref domain.ClusterRef) ClusterID { return ClusterID{ref.Engine, ref.Name} }

// Descriptions of the parts of a reference, for those that write their own schema.
const (
	ClusterReferenceDescription = "The cluster: `cluster = trainyard_cluster.lab`. Or an object with `name`, `engine` and `endpoint`."
	ClusterNameDescription      = "Name of the cluster."
	ClusterEngineDescription    = "Engine of the cluster. Defaults to `" + DefaultEngine + "`."
	ClusterEndpointDescription  = "Address of the cluster's engine. For `swarm`: `unix://`, `tcp://` or `ssh://`; defaults to the one that the `docker` command uses. For `systemd`: the `ssh://` address of one of the hosts; required."
)

// ClusterReferenceAttribute is the attribute by which a resource refers to its cluster.
func ClusterReferenceAttribute(engines []string) schema.Attribute {
	return schema.SingleNestedAttribute{
		MarkdownDescription: ClusterReferenceDescription + " Changing the cluster forces replacement.",
		Required:            true,
		Attributes: map[string]schema.Attribute{
			"name": schema.StringAttribute{
				MarkdownDescription: ClusterNameDescription,
				Required:            true,
				PlanModifiers:       []planmodifier.String{stringplanmodifier.RequiresReplace()},
			},
			"engine": schema.StringAttribute{
				MarkdownDescription: ClusterEngineDescription,
				Optional:            true,
				Computed:            true,
				Default:             stringdefault.StaticString(DefaultEngine),
				Validators:          []validator.String{stringvalidator.OneOf(engines...)},
				PlanModifiers:       []planmodifier.String{stringplanmodifier.RequiresReplace()},
			},
			"endpoint": schema.StringAttribute{
				MarkdownDescription: ClusterEndpointDescription + " Changing it changes nothing else.",
				Optional:            true,
				Validators:          []validator.String{stringvalidator.LengthAtLeast(1)},
			},
		},
	}
}

// ClusterRead is how a data source refers to a cluster. The id is there for Terraform alone: it is unknown until a new
// cluster is created, and so Terraform waits for that before it reads the data source.
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
				MarkdownDescription: "Set by `cluster = trainyard_cluster.lab`. It makes Terraform read a new cluster only after it has been created.",
				Optional:            true,
			},
		},
	}
}
