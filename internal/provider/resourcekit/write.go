package resourcekit

import (
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/tfsdk"
)

// Write is what an apply creates or updates, and where Terraform keeps the result.
type Write struct {
	Created bool
	Plan    tfsdk.Plan
	// Prior is the state before an update.
	Prior    tfsdk.State
	State    *tfsdk.State
	Identity *tfsdk.ResourceIdentity
	Private  PrivateState
	Diags    *diag.Diagnostics
}

// CreationOf returns the write of a creation.
func CreationOf(req resource.CreateRequest, resp *resource.CreateResponse) Write {
	return Write{true, req.Plan, tfsdk.State{}, &resp.State, resp.Identity, resp.Private, &resp.Diagnostics}
}

// UpdateOf returns the write of an update.
func UpdateOf(req resource.UpdateRequest, resp *resource.UpdateResponse) Write {
	return Write{false, req.Plan, req.State, &resp.State, resp.Identity, resp.Private, &resp.Diagnostics}
}

// Verb is the operation as named in errors.
func (w Write) Verb() string {
	if w.Created {
		return "create"
	}
	return "update"
}
