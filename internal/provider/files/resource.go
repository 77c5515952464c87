package files

import (
	"context"
	"errors"
	"fmt"
	"reflect"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"

	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
	"github.com/trainyard/terraform-provider-trainyard/internal/provider/group"
	"github.com/trainyard/terraform-provider-trainyard/internal/provider/resourcekit"
	"github.com/trainyard/terraform-provider-trainyard/internal/reconcile"
)

// filesResource is trainyard_files.
type filesResource struct{ resourcekit.Entity[Model] }

var (
	_ resource.ResourceWithConfigure      = &filesResource{}
	_ resource.ResourceWithValidateConfig = &filesResource{}
	_ resource.ResourceWithModifyPlan     = &filesResource{}
	_ resource.ResourceWithImportState    = &filesResource{}
	_ resource.ResourceWithIdentity       = &filesResource{}
)

func (r *filesResource) Schema(ctx context.Context, _ resource.SchemaRequest, resp *resource.SchemaResponse) {
	resp.Schema = Schema(ctx, r.Engines)
}

// put brings planned files to all hosts, and returns the state from a read after the write. Once their document is
// stored they are in the state, whatever fails after that.
func (r *filesResource) put(ctx context.Context, plan Model, w resourcekit.Write) (*Model, error) {
	defer r.Session.Plans.DropFiles(plan.address())
	spec := plan.expand(w.Diags)
	content, err := sourceOf(spec).Read(ctx)
	unusable := ""
	switch digest := content.Tree.Digest(); {
	case err != nil:
		unusable = err.Error()
	case !plan.Digest.IsUnknown() && digest != plan.Digest.ValueString():
		unusable = fmt.Sprintf("%s has changed since it was planned, from %s to %s. Plan and apply again.", spec.Source,
			plan.Digest.ValueString(), digest)
	}
	if unusable != "" {
		w.Diags.AddAttributeError(path.Root("source"), resourcekit.Unable(w.Verb(), plan), unusable)
	}
	if w.Diags.HasError() {
		return nil, nil
	}
	reconciler, err := resourcekit.Reach(ctx, r.Session.Open, plan.Cluster, w.Private)
	if err != nil {
		return nil, err
	}
	adopted, failure := reconciler.PutFiles(ctx, spec, engine.FilesSpec{Tree: content.Tree, Content: content.Tar},
		w.Created)
	if _, locked := errors.AsType[*engine.LockedError](failure); locked {
		return nil, failure // another run may have created them
	}
	if adopted {
		w.Diags.AddWarning("Files adopted", fmt.Sprintf(
			"Cluster %q already had files %q with this specification. This resource manages them from now on.",
			spec.Cluster, spec.Name,
		))
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), group.ReadTimeout)
	defer cancel()
	found, err := reconciler.Files(ctx, spec.Name)
	if failure != nil &&
		(err != nil || !reflect.DeepEqual(found.Document.Spec, spec) ||
			found.Document.Digest != content.Tree.Digest()) {
		return nil, failure
	}
	if err != nil {
		state := unread(plan, content.Tree)
		return &state, fmt.Errorf("they were copied to the hosts, but could not be read: %w", err)
	}
	state := flatten(found, plan)
	return &state, failure
}

func (r *filesResource) get(ctx context.Context, reconciler reconcile.Reconciler, prior Model) (Model, error) {
	found, err := reconciler.Files(ctx, prior.Name.ValueString())
	if err != nil {
		return prior, err
	}
	return flatten(found, prior), nil
}

func (r *filesResource) remove(
	ctx context.Context, reconciler reconcile.Reconciler, state Model, _ *diag.Diagnostics,
) error {
	return reconciler.DeleteFiles(ctx, state.Cluster.Key().Name, state.Name.ValueString())
}

// ImportState takes <cluster>/<name> as ID, or its parts as identity.
func (r *filesResource) ImportState(
	ctx context.Context, req resource.ImportStateRequest, resp *resource.ImportStateResponse,
) {
	resourcekit.Importable{
		Kind: "files", Form: "files, which is <cluster>/<name>, such as lab/code", Valid: resourcekit.PlainName,
	}.Into(ctx, r.Session, req, resp)
}

// NewResource returns trainyard_files for clusters of these engines.
func NewResource(engines []string) resource.Resource {
	r := &filesResource{}
	r.Resource, r.Timeout = resourcekit.NewResource("files", engines, resourcekit.IdentitySchema("files")),
		defaultTimeout
	r.Put, r.Get, r.Remove = r.put, r.get, r.remove
	return r
}
