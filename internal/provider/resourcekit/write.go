package resourcekit

import (
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/tfsdk"
)

// Write is what an apply creates or updates, and where Terraform keeps what came of it.
type Write struct {
	Created  bool
	Plan     tfsdk.Plan
	State    *tfsdk.State
	Identity *tfsdk.ResourceIdentity
	Private  PrivateState
	Diags    *diag.Diagnostics
}

// CreationOf returns a creation.
func CreationOf(req resource.CreateRequest, resp *resource.CreateResponse) Write {
	return Write{true, req.Plan, &resp.State, resp.Identity, resp.Private, &resp.Diagnostics}
}

// UpdateOf returns an update.
func UpdateOf(req resource.UpdateRequest, resp *resource.UpdateResponse) Write {
	return Write{false, req.Plan, &resp.State, resp.Identity, resp.Private, &resp.Diagnostics}
}
