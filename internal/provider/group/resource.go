package group

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
	"github.com/trainyard/terraform-provider-trainyard/internal/provider/resourcekit"
	"github.com/trainyard/terraform-provider-trainyard/internal/reconcile"
	"github.com/trainyard/terraform-provider-trainyard/internal/topology"
)

const (
	// defaultTimeout limits each operation on a group, except waiting for its completion.
	defaultTimeout = 30 * time.Minute
	// defaultCompletionTimeout limits a creation or update that waits for completion. It is long, as a creation that
	// times out is tainted, and replaced by the next apply.
	defaultCompletionTimeout = 7 * 24 * time.Hour
	// ReadTimeout limits the read after a failed write, whose context may be done.
	ReadTimeout = 30 * time.Second
)

// groupResource is trainyard_group.
type groupResource struct{ resourcekit.Resource }

var (
	_ resource.ResourceWithConfigure      = &groupResource{}
	_ resource.ResourceWithValidateConfig = &groupResource{}
	_ resource.ResourceWithModifyPlan     = &groupResource{}
	_ resource.ResourceWithImportState    = &groupResource{}
	_ resource.ResourceWithIdentity       = &groupResource{}
)

func (r *groupResource) Schema(ctx context.Context, _ resource.SchemaRequest, resp *resource.SchemaResponse) {
	resp.Schema = Schema(ctx, r.Engines)
}

func (r *groupResource) Create(ctx context.Context, req resource.CreateRequest, resp *resource.CreateResponse) {
	var plan Model
	if resp.Diagnostics.Append(req.Plan.Get(ctx, &plan)...); resp.Diagnostics.HasError() {
		return
	}
	timeout, diags := plan.Timeouts.Create(ctx, plan.defaultTimeout())
	resp.Diagnostics.Append(diags...)

	w := groupWrite{
		plan: plan, secrets: secretValues(ctx, req.Config, &resp.Diagnostics), timeout: timeout,
		summary: fmt.Sprintf("Unable to create group %q", plan.Name.ValueString()),
	}
	w.apply = func(ctx context.Context, reconciler reconcile.Reconciler, spec domain.Group) error {
		adopted, err := reconciler.Create(ctx, spec)
		if adopted && err == nil {
			resp.Diagnostics.AddWarning("Group adopted", fmt.Sprintf(
				"Cluster %q already had a group %q: the one specified here, or what an unfinished apply left behind. "+
					"This resource manages it from now on.",
				spec.Cluster, spec.Name))
		}
		return err
	}
	r.write(ctx, w, record{&resp.State, resp.Identity, resp.Private}, &resp.Diagnostics)
	r.Own(ctx, plan.Cluster.Key(), resourcekit.CreationOf(req, resp))
}

func (r *groupResource) Update(ctx context.Context, req resource.UpdateRequest, resp *resource.UpdateResponse) {
	var plan Model
	if resp.Diagnostics.Append(req.Plan.Get(ctx, &plan)...); resp.Diagnostics.HasError() {
		return
	}
	timeout, diags := plan.Timeouts.Update(ctx, plan.defaultTimeout())
	resp.Diagnostics.Append(diags...)

	w := groupWrite{
		plan: plan, secrets: secretValues(ctx, req.Config, &resp.Diagnostics), timeout: timeout,
		summary: fmt.Sprintf("Unable to update group %q", plan.Name.ValueString()),
	}
	w.apply = func(ctx context.Context, reconciler reconcile.Reconciler, spec domain.Group) error {
		if err := resourcekit.Recognise(ctx, reconciler.Engine, req.Private); err != nil {
			return err
		}
		return reconciler.Update(ctx, spec)
	}
	r.write(ctx, w, record{&resp.State, resp.Identity, resp.Private}, &resp.Diagnostics)
	r.Own(ctx, plan.Cluster.Key(), resourcekit.UpdateOf(req, resp))
}

// defaultTimeout limits a creation or update without a configured timeout.
func (m Model) defaultTimeout() time.Duration {
	if m.WaitFor.ValueString() == string(domain.WaitCompleted) {
		return defaultCompletionTimeout
	}
	return defaultTimeout
}

// groupWrite is a planned group to write.
type groupWrite struct {
	plan    Model
	secrets domain.SecretValues
	timeout time.Duration
	// summary is the summary of its errors.
	summary string
	// apply writes it.
	apply func(context.Context, reconcile.Reconciler, domain.Group) error
}

// write applies a group as planned, and sets the state from a read after the write. If the write fails after the group
// was stored, the group is in the state all the same, so that nothing is untracked.
func (r *groupResource) write(ctx context.Context, w groupWrite, to record, diags *diag.Diagnostics) {
	key, spec := w.plan.Cluster.Key(), w.plan.expand(diags)
	reconciler, err := r.Session.Open(key)
	if err != nil {
		resourcekit.AddError(diags, w.summary, err)
	}
	if diags.HasError() {
		return
	}
	reconciler.Secrets, reconciler.Planned = w.secrets, PlannedDevices(w.plan.Placements)
	defer r.Session.Plans.DropGroup(resourcekit.IDOf(key), spec.Name)

	bounded, cancel := context.WithTimeout(ctx, w.timeout)
	defer cancel()
	failure := w.apply(bounded, reconciler, spec)
	if failure != nil {
		resourcekit.AddError(diags, w.summary, failure)
		if foreign(failure) {
			return
		}
	}

	ctx, cancel = context.WithTimeout(context.WithoutCancel(ctx), ReadTimeout)
	defer cancel()
	group, err := reconciler.ReadSettled(ctx, spec.Name)
	switch {
	case err == nil && (failure == nil || group.Document.Spec.Equal(spec)):
		model := FlattenGroup(group, w.plan)
		if failure == nil { // else Terraform does not compare it with the plan
			model.keepPlan(w.plan, diags)
		}
		to.set(ctx, model, group, diags)
	case failure != nil && (err == nil || errors.Is(err, engine.ErrNotFound)):
		// It failed before anything was stored.
	default:
		resourcekit.AddError(diags, "Unable to read the group after it was written", err)
		model := w.plan
		model.ID = types.StringValue(domain.GroupID(spec.Cluster, spec.Name))
		model.Members, model.Placements, model.ClusterSpec = resourcekit.StringMap(nil), resourcekit.StringMap(nil),
			resourcekit.StringMap(nil)
		to.set(ctx, model, reconcile.Group{}, diags)
	}
}

// PlannedDevices returns the planned places of members with GPUs.
func PlannedDevices(placements types.Map) map[string]domain.Assignment {
	planned := map[string]domain.Assignment{}
	for member, place := range resourcekit.TextsIn(placements) {
		if assigned := domain.ParsePlace(place); assigned.GPUs != "" {
			planned[member] = assigned
		}
	}
	return planned
}

// foreign reports whether an error means that the group is somebody else's, or that somebody else is changing it.
func foreign(err error) bool {
	var locked *engine.LockedError
	var exists *reconcile.ExistsError
	var astray *engine.ElsewhereError
	return errors.As(err, &locked) || errors.As(err, &exists) || errors.As(err, &astray)
}

// record is where Terraform keeps a group.
type record struct {
	state    *tfsdk.State
	identity *tfsdk.ResourceIdentity
	private  resourcekit.PrivateState
}

// set stores a group as read.
func (to record) set(ctx context.Context, model Model, group reconcile.Group, diags *diag.Diagnostics) {
	diags.Append(to.state.Set(ctx, model)...)
	diags.Append(to.identity.Set(ctx, model.identity())...)
	if err := remember(ctx, to.private, group); err != nil {
		resourcekit.AddError(diags, "Unable to store what was read of the group", err)
	}
}

func (r *groupResource) Read(ctx context.Context, req resource.ReadRequest, resp *resource.ReadResponse) {
	var prior Model
	if resp.Diagnostics.Append(req.State.Get(ctx, &prior)...); resp.Diagnostics.HasError() {
		return
	}
	summary := fmt.Sprintf("Unable to read group %q", prior.Name.ValueString())
	reconciler, err := r.Session.Plan(prior.Cluster.Key())
	if err != nil {
		resourcekit.AddError(&resp.Diagnostics, summary, err)
		return
	}
	err = resourcekit.Recognise(ctx, reconciler.Engine, req.Private)
	var group reconcile.Group
	if err == nil {
		group, err = r.refresh(ctx, prior, reconciler)
	}
	switch {
	case errors.Is(err, engine.ErrNotFound):
		resp.State.RemoveResource(ctx)
		// The framework requires an identity even for a resource that is gone, and Terraform before 1.12 keeps none.
		resp.Diagnostics.Append(resp.Identity.Set(ctx, prior.identity())...)
	case err != nil:
		resourcekit.AddError(&resp.Diagnostics, summary, err)
	default:
		// Leave an unchanged state as it is: writing the maps of a large group takes a while.
		if model := FlattenGroup(group, prior); !reflect.DeepEqual(model, prior) {
			resp.Diagnostics.Append(resp.State.Set(ctx, model)...)
		}
		resp.Diagnostics.Append(resp.Identity.Set(ctx, prior.identity())...)
		err := errors.Join(remember(ctx, resp.Private, group),
			r.RememberOwner(ctx, reconciler.Engine, resp.State, resp.Private))
		if err != nil {
			resourcekit.AddError(&resp.Diagnostics, summary, err)
		}
	}
}

// refresh returns a group as it was when this run first read its cluster. If the group is not as it should be, and a
// policy may just have scaled it, it is read again.
func (r *groupResource) refresh(
	ctx context.Context, prior Model, reconciler reconcile.Reconciler,
) (reconcile.Group, error) {
	group, err := reconciler.Refresh(ctx, prior.Name.ValueString())
	if err != nil || !topology.AnyScalable(group.Document.Spec) || !group.NeedsApply() {
		return group, err
	}
	if reconciler, err = r.Session.Open(prior.Cluster.Key()); err != nil {
		return group, err
	}
	return reconciler.ReadSettled(ctx, prior.Name.ValueString())
}

func (r *groupResource) Delete(ctx context.Context, req resource.DeleteRequest, resp *resource.DeleteResponse) {
	var state Model
	if resp.Diagnostics.Append(req.State.Get(ctx, &state)...); resp.Diagnostics.HasError() {
		return
	}
	timeout, diags := state.Timeouts.Delete(ctx, defaultTimeout)
	resp.Diagnostics.Append(diags...)
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()

	reconciler, err := r.Session.Open(state.Cluster.Key())
	if err == nil {
		err = resourcekit.Recognise(ctx, reconciler.Engine, req.Private)
	}
	if err == nil {
		err = r.IfOwned(ctx, reconciler.Engine, req.State, req.Private, &resp.Diagnostics,
			func() error { return reconciler.Destroy(ctx, state.Name.ValueString()) })
	}
	if err != nil {
		resourcekit.AddError(&resp.Diagnostics, fmt.Sprintf("Unable to destroy group %q", state.Name.ValueString()),
			err)
		return
	}
	r.Session.Plans.DropGroup(resourcekit.IDOf(state.Cluster.Key()), state.Name.ValueString())
}

// ImportState takes <cluster>/<group> as ID, or its parts as identity.
func (r *groupResource) ImportState(
	ctx context.Context, req resource.ImportStateRequest, resp *resource.ImportStateResponse,
) {
	resourcekit.Importable{
		Kind: "group", Form: "a group, which is <cluster>/<group>, such as lab/mnist", Valid: resourcekit.PlainName,
	}.Into(ctx, r.Session, req, resp)
}

// NewResource returns trainyard_group for clusters of these engines.
func NewResource(engines []string) resource.Resource {
	return &groupResource{resourcekit.NewResource("group", engines, resourcekit.IdentitySchema("group"))}
}
