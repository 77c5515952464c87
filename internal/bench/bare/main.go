//go:build linux

// Command bare is a Terraform provider with one resource, which holds maps and does nothing: the baseline for the plan
// of a group.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"

	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/provider"
	"github.com/hashicorp/terraform-plugin-framework/providerserver"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/mapplanmodifier"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/planmodifier"
	"github.com/hashicorp/terraform-plugin-framework/types"
)

// address is the provider's source address.
const address = "registry.terraform.io/trainyard/bare"

func main() {
	if err := providerserver.Serve(context.Background(), func() provider.Provider {
		return bare{}
	}, providerserver.ServeOpts{Address: address}); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

type bare struct{}

func (bare) Metadata(_ context.Context, _ provider.MetadataRequest, resp *provider.MetadataResponse) {
	resp.TypeName = "bare"
}

func (bare) Schema(context.Context, provider.SchemaRequest, *provider.SchemaResponse)          {}
func (bare) Configure(context.Context, provider.ConfigureRequest, *provider.ConfigureResponse) {}
func (bare) DataSources(context.Context) []func() datasource.DataSource                        { return nil }

func (bare) Resources(context.Context) []func() resource.Resource {
	return []func() resource.Resource{func() resource.Resource { return maps{} }}
}

// maps is a resource that holds the maps from a file.
type maps struct{}

// model is the resource's data, with the same maps as a group.
type model struct {
	File        types.String `tfsdk:"file"`
	Members     types.Map    `tfsdk:"members"`
	Placements  types.Map    `tfsdk:"placements"`
	ClusterSpec types.Map    `tfsdk:"cluster_spec"`
}

func (maps) Metadata(_ context.Context, _ resource.MetadataRequest, resp *resource.MetadataResponse) {
	resp.TypeName = "bare_maps"
}

func (maps) Schema(_ context.Context, _ resource.SchemaRequest, resp *resource.SchemaResponse) {
	computed := schema.MapAttribute{
		ElementType: types.StringType, Computed: true,
		PlanModifiers: []planmodifier.Map{mapplanmodifier.UseStateForUnknown()},
	}
	resp.Schema = schema.Schema{Attributes: map[string]schema.Attribute{
		"file":    schema.StringAttribute{Required: true},
		"members": computed, "placements": computed, "cluster_spec": computed,
	}}
}

func (maps) Create(ctx context.Context, req resource.CreateRequest, resp *resource.CreateResponse) {
	var m model
	if resp.Diagnostics.Append(req.Plan.Get(ctx, &m)...); resp.Diagnostics.HasError() {
		return
	}
	m.read(ctx, &resp.Diagnostics)
	resp.Diagnostics.Append(resp.State.Set(ctx, m)...)
}

// read reads the maps from the file.
func (m *model) read(ctx context.Context, diags *diag.Diagnostics) {
	text, err := os.ReadFile(m.File.ValueString())
	if err != nil {
		diags.AddError("Unable to read the maps", err.Error())
		return
	}
	var held struct {
		Members     map[string]string `json:"members"`
		Placements  map[string]string `json:"placements"`
		ClusterSpec map[string]string `json:"cluster_spec"`
	}
	if err := json.Unmarshal(text, &held); err != nil {
		diags.AddError("Unable to read the maps", err.Error())
		return
	}
	for into, from := range map[*types.Map]map[string]string{
		&m.Members: held.Members, &m.Placements: held.Placements, &m.ClusterSpec: held.ClusterSpec,
	} {
		var added diag.Diagnostics
		*into, added = types.MapValueFrom(ctx, types.StringType, from)
		diags.Append(added...)
	}
}

func (maps) Read(context.Context, resource.ReadRequest, *resource.ReadResponse) {}
func (maps) Update(ctx context.Context, req resource.UpdateRequest, resp *resource.UpdateResponse) {
	resp.State.Raw = req.Plan.Raw
}
func (maps) Delete(context.Context, resource.DeleteRequest, *resource.DeleteResponse) {}
