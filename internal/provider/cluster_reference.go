package provider

import (
	"fmt"

	datasource "github.com/hashicorp/terraform-plugin-framework/datasource/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/planmodifier"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/stringdefault"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/stringplanmodifier"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/hashicorp/terraform-plugin-framework-validators/stringvalidator"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
)

// clusterReference is how a group refers to its cluster: the smallest part of the resource that reaches it.
type clusterReference struct {
	Name     types.String `tfsdk:"name"`
	Engine   types.String `tfsdk:"engine"`
	Endpoint types.String `tfsdk:"endpoint"`
}

func (c clusterReference) key() domain.ClusterRef { return keyOf(c.Name, c.Engine, c.Endpoint) }

// Meaning returns the name: the domain knows in which cluster a thing is, and not how that is reached.
func (c clusterReference) Meaning() any { return c.Name.ValueString() }

// Spelled returns the reference to a cluster of another name that is reached in the same way.
func (c clusterReference) Spelled(name any) any {
	c.Name, c.Engine = types.StringValue(fmt.Sprint(name)), types.StringValue(c.key().Engine)
	return c
}

func keyOf(name, engine, endpoint types.String) domain.ClusterRef {
	key := domain.ClusterRef{Name: name.ValueString(), Engine: engine.ValueString(), Endpoint: endpoint.ValueString()}
	if key.Engine == "" {
		key.Engine = defaultEngine
	}
	return key
}

// clusterID is what tells a cluster from all others, wherever it is reached.
type clusterID struct{ engine, name string }

func idOf(ref domain.ClusterRef) clusterID { return clusterID{ref.Engine, ref.Name} }

const (
	clusterReferenceDescription = "The cluster, as a whole: `cluster = trainyard_cluster.lab`. An object of its name, engine and endpoint does as well."
	clusterNameDescription      = "Name of the cluster."
	clusterEngineDescription    = "Engine of the cluster. Defaults to `" + defaultEngine + "`."
	clusterEndpointDescription  = "Where the cluster's engine is reached, for `swarm`: `unix://`, `tcp://` or `ssh://`. Defaults to where the `docker` command looks."
)

// clusterReferenceAttribute is the attribute by which a resource refers to its cluster.
func clusterReferenceAttribute(engines []string) schema.Attribute {
	return schema.SingleNestedAttribute{
		MarkdownDescription: clusterReferenceDescription + " Another cluster means another resource: the old one is destroyed.",
		Required:            true,
		Attributes: map[string]schema.Attribute{
			"name": schema.StringAttribute{
				MarkdownDescription: clusterNameDescription,
				Required:            true,
				PlanModifiers:       []planmodifier.String{stringplanmodifier.RequiresReplace()},
			},
			"engine": schema.StringAttribute{
				MarkdownDescription: clusterEngineDescription,
				Optional:            true,
				Computed:            true,
				Default:             stringdefault.StaticString(defaultEngine),
				Validators:          []validator.String{stringvalidator.OneOf(engines...)},
				PlanModifiers:       []planmodifier.String{stringplanmodifier.RequiresReplace()},
			},
			"endpoint": schema.StringAttribute{
				MarkdownDescription: clusterEndpointDescription + " Another endpoint changes nothing else.",
				Optional:            true,
				Validators:          []validator.String{stringvalidator.LengthAtLeast(1)},
			},
		},
	}
}

// clusterRead is how a data source refers to a cluster. The id is there for Terraform alone: it is unknown until a new
// cluster is created, and so Terraform waits for that before it reads the data source.
type clusterRead struct {
	clusterReference
	ID types.String `tfsdk:"id"`
}

// clusterReadAttribute is the attribute by which a data source refers to a cluster.
func clusterReadAttribute(engines []string) datasource.Attribute {
	return datasource.SingleNestedAttribute{
		MarkdownDescription: clusterReferenceDescription,
		Required:            true,
		Attributes: map[string]datasource.Attribute{
			"name": datasource.StringAttribute{
				MarkdownDescription: clusterNameDescription,
				Required:            true,
			},
			"engine": datasource.StringAttribute{
				MarkdownDescription: clusterEngineDescription,
				Optional:            true,
				Validators:          []validator.String{stringvalidator.OneOf(engines...)},
			},
			"endpoint": datasource.StringAttribute{
				MarkdownDescription: clusterEndpointDescription,
				Optional:            true,
				Validators:          []validator.String{stringvalidator.LengthAtLeast(1)},
			},
			"id": datasource.StringAttribute{
				MarkdownDescription: "Comes with `cluster = trainyard_cluster.lab`, and makes Terraform read a new cluster after its creation only.",
				Optional:            true,
			},
		},
	}
}
