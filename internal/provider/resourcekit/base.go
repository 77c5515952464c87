package resourcekit

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/resource/identityschema"
)

// base is the common part of resources and data sources.
type base struct {
	name string
	// Engines are the names of the engines.
	Engines []string
	// Session is nil until the provider is configured.
	Session *Session
}

// Resource is the common part of resources, which embed it.
type Resource struct {
	base

	identity identityschema.Schema
}

// NewResource returns the common part of trainyard_<name>, for clusters of these engines.
func NewResource(name string, engines []string, identity identityschema.Schema) Resource {
	return Resource{base{name: name, Engines: engines}, identity}
}

// Metadata names the resource.
func (r *Resource) Metadata(_ context.Context, req resource.MetadataRequest, resp *resource.MetadataResponse) {
	resp.TypeName = req.ProviderTypeName + "_" + r.name
}

// IdentitySchema returns the schema of the resource's identity.
func (r *Resource) IdentitySchema(
	_ context.Context, _ resource.IdentitySchemaRequest, resp *resource.IdentitySchemaResponse,
) {
	resp.IdentitySchema = r.identity
}

// Configure takes the provider's session.
func (r *Resource) Configure(_ context.Context, req resource.ConfigureRequest, resp *resource.ConfigureResponse) {
	r.Session = SessionOf(req.ProviderData, &resp.Diagnostics)
}

// DataSource is the common part of data sources, which embed it.
type DataSource struct{ base }

// NewDataSource returns the common part of trainyard_<name>, for clusters of these engines.
func NewDataSource(name string, engines []string) DataSource {
	return DataSource{base{name: name, Engines: engines}}
}

// Metadata names the data source.
func (d *DataSource) Metadata(_ context.Context, req datasource.MetadataRequest, resp *datasource.MetadataResponse) {
	resp.TypeName = req.ProviderTypeName + "_" + d.name
}

// Configure takes the provider's session.
func (d *DataSource) Configure(_ context.Context, req datasource.ConfigureRequest, resp *datasource.ConfigureResponse) {
	d.Session = SessionOf(req.ProviderData, &resp.Diagnostics)
}
