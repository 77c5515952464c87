package resourcekit

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/resource/identityschema"
)

// base is what resources and data sources have in common.
type base struct {
	name string
	// Engines are the names of the engines.
	Engines []string
	// Session is nil until the provider is configured.
	Session *Session
}

// Resource is what resources have in common; they embed it.
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

// IdentitySchema is the schema of the resource's identity.
func (r *Resource) IdentitySchema(_ context.Context, _ resource.IdentitySchemaRequest, resp *resource.IdentitySchemaResponse) {
	resp.IdentitySchema = r.identity
}

// Configure takes the provider's session.
func (r *Resource) Configure(_ context.Context, req resource.ConfigureRequest, resp *resource.ConfigureResponse) {
	r.Session = SessionOf(req.ProviderData, &resp.Diagnostics)
}

// DataSource is what data sources have in common; they embed it.
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
