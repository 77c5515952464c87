package provider

import (
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/tfsdk"
)

// write is what an apply creates or updates, and where Terraform keeps what came of it.
type write struct {
	created  bool
	plan     tfsdk.Plan
	state    *tfsdk.State
	identity *tfsdk.ResourceIdentity
	private  privateState
	diags    *diag.Diagnostics
}

func creationOf(req resource.CreateRequest, resp *resource.CreateResponse) write {
	return write{true, req.Plan, &resp.State, resp.Identity, resp.Private, &resp.Diagnostics}
}

func updateOf(req resource.UpdateRequest, resp *resource.UpdateResponse) write {
	return write{false, req.Plan, &resp.State, resp.Identity, resp.Private, &resp.Diagnostics}
}
