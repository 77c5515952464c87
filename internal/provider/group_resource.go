package provider

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/tfsdk"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
	"github.com/trainyard/terraform-provider-trainyard/internal/reconcile"
	"github.com/trainyard/terraform-provider-trainyard/internal/topology"
)

const (
	// defaultGroupTimeout bounds each operation on a group, but for the wait for its completion.
	defaultGroupTimeout = 30 * time.Minute
	// defaultCompletionTimeout bounds a creation or change that waits until the training is done: a creation that takes too long
	// is tainted, and replaced by the next apply.
	defaultCompletionTimeout = 7 * 24 * time.Hour
	// readTimeout bounds the read after a write that failed, of which the context may be done.
	readTimeout = 30 * time.Second
)

// groupResource is trainyard_group.
type groupResource struct {
	engines []string
	session *session
}

var (
	_ resource.ResourceWithConfigure      = &groupResource{}
	_ resource.ResourceWithValidateConfig = &groupResource{}
	_ resource.ResourceWithModifyPlan     = &groupResource{}
	_ resource.ResourceWithImportState    = &groupResource{}
	_ resource.ResourceWithIdentity       = &groupResource{}
)

func (r *groupResource) Metadata(_ context.Context, req resource.MetadataRequest, resp *resource.MetadataResponse) {
	resp.TypeName = req.ProviderTypeName + "_group"
}

func (r *groupResource) Schema(ctx context.Context, _ resource.SchemaRequest, resp *resource.SchemaResponse) {
	resp.Schema = groupSchema(ctx, r.engines)
}

func (r *groupResource) IdentitySchema(_ context.Context, _ resource.IdentitySchemaRequest, resp *resource.IdentitySchemaResponse) {
	resp.IdentitySchema = identitySchema("group")
}

func (r *groupResource) Configure(_ context.Context, req resource.ConfigureRequest, resp *resource.ConfigureResponse) {
	r.session = sessionOf(req.ProviderData, &resp.Diagnostics)
}

func (r *groupResource) Create(ctx context.Context, req resource.CreateRequest, resp *resource.CreateResponse) {
	var plan groupModel
	if resp.Diagnostics.Append(req.Plan.Get(ctx, &plan)...); resp.Diagnostics.HasError() {
		return
	}
	timeout, diags := plan.Timeouts.Create(ctx, plan.defaultTimeout())
	resp.Diagnostics.Append(diags...)

	w := groupWrite{plan: plan, secrets: secretValues(ctx, req.Config, &resp.Diagnostics), timeout: timeout, summary: fmt.Sprintf("Unable to create group %q", plan.Name.ValueString())}
	w.apply = func(ctx context.Context, reconciler reconcile.Reconciler, spec domain.Group) error {
		adopted, err := reconciler.Create(ctx, spec)
		if adopted && err == nil {
			resp.Diagnostics.AddWarning("Group adopted", fmt.Sprintf(
				"Cluster %q had a group %q already: the one specified here, or what an apply left behind that did not come to its end. It is managed by this resource from now on.",
				spec.Cluster, spec.Name))
		}
		return err
	}
	r.write(ctx, w, groupRecord{&resp.State, resp.Identity, resp.Private}, &resp.Diagnostics)
}

func (r *groupResource) Update(ctx context.Context, req resource.UpdateRequest, resp *resource.UpdateResponse) {
	var plan groupModel
	if resp.Diagnostics.Append(req.Plan.Get(ctx, &plan)...); resp.Diagnostics.HasError() {
		return
	}
	timeout, diags := plan.Timeouts.Update(ctx, plan.defaultTimeout())
	resp.Diagnostics.Append(diags...)

	w := groupWrite{plan: plan, secrets: secretValues(ctx, req.Config, &resp.Diagnostics), timeout: timeout, summary: fmt.Sprintf("Unable to update group %q", plan.Name.ValueString())}
	w.apply = func(ctx context.Context, reconciler reconcile.Reconciler, spec domain.Group) error {
		if err := recognise(ctx, reconciler.Engine, req.Private); err != nil {
			return err
		}
		return reconciler.Update(ctx, spec)
	}
	r.write(ctx, w, groupRecord{&resp.State, resp.Identity, resp.Private}, &resp.Diagnostics)
}

// defaultTimeout bounds a creation or change for which the configuration sets no bound.
func (m groupModel) defaultTimeout() time.Duration {
	if m.WaitFor.ValueString() == string(domain.WaitCompleted) {
		return defaultCompletionTimeout
	}
	return defaultGroupTimeout
}

// groupWrite is a planned group that is to be written.
type groupWrite struct {
	plan    groupModel
	secrets domain.SecretValues
	timeout time.Duration
	// summary is what could not be done, should it fail.
	summary string
	// apply writes it.
	apply func(context.Context, reconcile.Reconciler, domain.Group) error
}

// write makes a group be as planned, and sets the state to that of a read after the write. Where the write fails
// after the group was stored, the state has it all the same: nothing that is there is untracked.
func (r *groupResource) write(ctx context.Context, w groupWrite, to groupRecord, diags *diag.Diagnostics) {
	key, spec := w.plan.Cluster.key(), w.plan.expand(diags)
	reconciler, err := r.session.open(key)
	if err != nil {
		addError(diags, w.summary, err)
	}
	if diags.HasError() {
		return
	}
	reconciler.Secrets, reconciler.Planned = w.secrets, plannedDevices(w.plan.Placements)
	defer r.session.plans.dropGroup(idOf(key), spec.Name)

	bounded, cancel := context.WithTimeout(ctx, w.timeout)
	defer cancel()
	failure := w.apply(bounded, reconciler, spec)
	if failure != nil {
		addError(diags, w.summary, failure)
		if foreign(failure) {
			return
		}
	}

	ctx, cancel = context.WithTimeout(context.WithoutCancel(ctx), readTimeout)
	defer cancel()
	group, err := reconciler.ReadSettled(ctx, spec.Name)
	switch {
	case err == nil && (failure == nil || group.Document.Spec.Equal(spec)):
		to.set(ctx, flattenGroup(group, w.plan), group, diags)
	case failure != nil && (err == nil || errors.Is(err, engine.ErrNotFound)):
		// It failed before anything was stored.
	default:
		addError(diags, "Unable to read the group after it was written", err)
		model := w.plan
		model.ID = types.StringValue(domain.GroupID(spec.Cluster, spec.Name))
		model.Members, model.Placements, model.ClusterSpec = stringMap(nil), stringMap(nil), stringMap(nil)
		to.set(ctx, model, reconcile.Group{}, diags)
	}
}

// plannedDevices returns where a plan shows members that have GPUs.
func plannedDevices(placements types.Map) map[string]domain.Assignment {
	planned := map[string]domain.Assignment{}
	for member, place := range textsIn(placements) {
		if assigned := domain.ParsePlace(place); assigned.GPUs != "" {
			planned[member] = assigned
		}
	}
	return planned
}

// foreign tells whether an error says that the group is somebody else's, or in somebody else's hands.
func foreign(err error) bool {
	var locked *engine.LockedError
	var exists *reconcile.ExistsError
	var astray *engine.ElsewhereError
	return errors.As(err, &locked) || errors.As(err, &exists) || errors.As(err, &astray)
}

// groupRecord is what Terraform keeps of a group.
type groupRecord struct {
	state    *tfsdk.State
	identity *tfsdk.ResourceIdentity
	private  privateState
}

// set has it hold a group as it was read.
func (to groupRecord) set(ctx context.Context, model groupModel, group reconcile.Group, diags *diag.Diagnostics) {
	diags.Append(to.state.Set(ctx, model)...)
	diags.Append(to.identity.Set(ctx, model.identity())...)
	if err := rememberGroup(ctx, to.private, group); err != nil {
		addError(diags, "Unable to note what was read of the group", err)
	}
}

func (r *groupResource) Read(ctx context.Context, req resource.ReadRequest, resp *resource.ReadResponse) {
	var prior groupModel
	if resp.Diagnostics.Append(req.State.Get(ctx, &prior)...); resp.Diagnostics.HasError() {
		return
	}
	summary := fmt.Sprintf("Unable to read group %q", prior.Name.ValueString())
	reconciler, err := r.session.plan(prior.Cluster.key())
	if err != nil {
		addError(&resp.Diagnostics, summary, err)
		return
	}
	err = recognise(ctx, reconciler.Engine, req.Private)
	var group reconcile.Group
	if err == nil {
		group, err = r.refresh(ctx, prior, reconciler)
	}
	switch {
	case errors.Is(err, engine.ErrNotFound):
		resp.State.RemoveResource(ctx)
		// Terraform before 1.12 keeps no identity, and the framework insists on one even for what is gone.
		resp.Diagnostics.Append(resp.Identity.Set(ctx, prior.identity())...)
	case err != nil:
		addError(&resp.Diagnostics, summary, err)
	default:
		// What did not change is left as it is: to write the maps of a large group anew takes a while.
		if model := flattenGroup(group, prior); !reflect.DeepEqual(model, prior) {
			resp.Diagnostics.Append(resp.State.Set(ctx, model)...)
		}
		resp.Diagnostics.Append(resp.Identity.Set(ctx, prior.identity())...)
		if err := rememberGroup(ctx, resp.Private, group); err != nil {
			addError(&resp.Diagnostics, summary, err)
		}
	}
}

// refresh returns a group as it was when this run first read its cluster; one that is not as it should be, and of which a policy may just have
// changed a count, as it is now.
func (r *groupResource) refresh(ctx context.Context, prior groupModel, reconciler reconcile.Reconciler) (reconcile.Group, error) {
	group, err := reconciler.Refresh(ctx, prior.Name.ValueString())
	if err != nil || !topology.AnyScalable(group.Document.Spec) || !group.Amiss() {
		return group, err
	}
	if reconciler, err = r.session.open(prior.Cluster.key()); err != nil {
		return group, err
	}
	return reconciler.ReadSettled(ctx, prior.Name.ValueString())
}

func (r *groupResource) Delete(ctx context.Context, req resource.DeleteRequest, resp *resource.DeleteResponse) {
	var state groupModel
	if resp.Diagnostics.Append(req.State.Get(ctx, &state)...); resp.Diagnostics.HasError() {
		return
	}
	timeout, diags := state.Timeouts.Delete(ctx, defaultGroupTimeout)
	resp.Diagnostics.Append(diags...)
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()

	reconciler, err := r.session.open(state.Cluster.key())
	if err == nil {
		err = recognise(ctx, reconciler.Engine, req.Private)
	}
	if err == nil {
		err = reconciler.Destroy(ctx, state.Name.ValueString())
	}
	if err != nil {
		addError(&resp.Diagnostics, fmt.Sprintf("Unable to destroy group %q", state.Name.ValueString()), err)
		return
	}
	r.session.plans.dropGroup(idOf(state.Cluster.key()), state.Name.ValueString())
}

// ImportState takes <cluster>/<group>, as ID or in parts as identity.
func (r *groupResource) ImportState(ctx context.Context, req resource.ImportStateRequest, resp *resource.ImportStateResponse) {
	importable{"group", "a group, which is <cluster>/<group>, such as lab/mnist", plainName}.into(ctx, r.session, req, resp)
}
