package resourcekit

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"time"

	"github.com/hashicorp/terraform-plugin-framework-timeouts/resource/timeouts"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/resource"

	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
	"github.com/trainyard/terraform-provider-trainyard/internal/reconcile"
)

// Entity is a resource of a cluster, given by its callbacks. It does what all such resources have in common: timeouts,
// recognising the cluster, the state from a read after the write, the identity, ownership, and removing what is gone.
type Entity[M Model] struct {
	Resource

	// Timeout limits an operation without a configured timeout.
	Timeout time.Duration
	// PutTimeout is the limit of a creation or update that depends on the plan; nil for Timeout.
	PutTimeout func(plan M) time.Duration
	// Put applies a plan, and returns the state from a read after the write. If it fails, the state is that of what
	// exists all the same, nil for nothing.
	Put func(ctx context.Context, plan M, w Write) (*M, error)
	// Get returns the current state of prior, or [engine.ErrNotFound].
	Get func(ctx context.Context, r reconcile.Reconciler, prior M) (M, error)
	// Remove removes the resource. It is no error if that is gone already.
	Remove func(ctx context.Context, r reconcile.Reconciler, state M, diags *diag.Diagnostics) error
}

// Model is the model of a resource that belongs to a cluster.
type Model interface {
	// InCluster returns the cluster that it belongs to.
	InCluster() ClusterReference
	// Limits returns the configured timeouts.
	Limits() timeouts.Value
	// IdentityData returns the resource's identity.
	IdentityData() any
	// Title names the resource in errors, such as: GPU pool "v100".
	Title() string
}

// Unable is the summary of an error about a resource.
func Unable(do string, m Model) string { return fmt.Sprintf("Unable to %s %s", do, m.Title()) }

// Create creates the resource, or adopts an existing one that matches the plan.
func (e *Entity[M]) Create(ctx context.Context, req resource.CreateRequest, resp *resource.CreateResponse) {
	e.write(ctx, CreationOf(req, resp))
}

// Update applies the plan.
func (e *Entity[M]) Update(ctx context.Context, req resource.UpdateRequest, resp *resource.UpdateResponse) {
	e.write(ctx, UpdateOf(req, resp))
}

func (e *Entity[M]) write(ctx context.Context, w Write) {
	var plan M
	if w.Diags.Append(w.Plan.Get(ctx, &plan)...); w.Diags.HasError() {
		return
	}
	limit := plan.Limits().Update
	if w.Created {
		limit = plan.Limits().Create
	}
	fallback := e.Timeout
	if e.PutTimeout != nil {
		fallback = e.PutTimeout(plan)
	}
	ctx, cancel := within(ctx, limit, fallback, w.Diags)
	defer cancel()
	state, err := e.Put(ctx, plan, w)
	if err != nil {
		AddError(w.Diags, Unable(w.Verb(), plan), err)
	}
	if state != nil {
		w.Diags.Append(w.State.Set(ctx, *state)...)
		w.Diags.Append(w.Identity.Set(ctx, plan.IdentityData())...)
	}
	e.Own(ctx, plan.InCluster().Key(), w)
}

// within returns a context with the timeout of an operation.
func within(
	ctx context.Context, limit func(context.Context, time.Duration) (time.Duration, diag.Diagnostics),
	fallback time.Duration, diags *diag.Diagnostics,
) (context.Context, context.CancelFunc) {
	timeout, malformed := limit(ctx, fallback)
	diags.Append(malformed...)
	return context.WithTimeout(ctx, timeout)
}

// Read refreshes the resource. Only what is definitely gone leaves the state.
func (e *Entity[M]) Read(ctx context.Context, req resource.ReadRequest, resp *resource.ReadResponse) {
	var prior M
	if resp.Diagnostics.Append(req.State.Get(ctx, &prior)...); resp.Diagnostics.HasError() {
		return
	}
	// The framework requires an identity even for a resource that is gone.
	resp.Diagnostics.Append(resp.Identity.Set(ctx, prior.IdentityData())...)
	reconciler, err := Reach(ctx, e.Session.Plan, prior.InCluster(), resp.Private)
	var state M
	if err == nil {
		state, err = e.Get(ctx, reconciler, prior)
	}
	switch {
	case errors.Is(err, engine.ErrNotFound):
		resp.State.RemoveResource(ctx)
	case err != nil:
		AddError(&resp.Diagnostics, Unable("read", prior), err)
	default:
		// Leave an unchanged state as it is: writing large maps takes a while.
		if !reflect.DeepEqual(state, prior) {
			resp.Diagnostics.Append(resp.State.Set(ctx, state)...)
		}
		if err := e.RememberOwner(ctx, reconciler.Engine, resp.State, resp.Private); err != nil {
			AddError(&resp.Diagnostics, Unable("read", prior), err)
		}
	}
}

// Delete removes the resource.
func (e *Entity[M]) Delete(ctx context.Context, req resource.DeleteRequest, resp *resource.DeleteResponse) {
	var state M
	if resp.Diagnostics.Append(req.State.Get(ctx, &state)...); resp.Diagnostics.HasError() {
		return
	}
	ctx, cancel := within(ctx, state.Limits().Delete, e.Timeout, &resp.Diagnostics)
	defer cancel()
	reconciler, err := Reach(ctx, e.Session.Open, state.InCluster(), resp.Private)
	if err == nil {
		err = e.IfOwned(ctx, reconciler.Engine, req.State, resp.Private, &resp.Diagnostics,
			func() error { return e.Remove(ctx, reconciler, state, &resp.Diagnostics) })
	}
	if err != nil {
		AddError(&resp.Diagnostics, Unable("remove", state), err)
	}
}
