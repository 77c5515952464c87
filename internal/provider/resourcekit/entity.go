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

// Entity is a resource that belongs to a cluster, as its callbacks. What all such resources do alike is here: timeouts,
// the cluster recognised, the state of a read after the write, the identity, and what is gone.
type Entity[M Model] struct {
	Resource

	// Timeout bounds an operation for which the configuration sets no bound.
	Timeout time.Duration
	// PutTimeout bounds a creation or change where that depends on what is planned; nil for Timeout.
	PutTimeout func(plan M) time.Duration
	// Put makes it be as planned, and returns the state of a read after the write. Where it fails, the state is that of
	// what is there all the same, nil for nothing.
	Put func(ctx context.Context, plan M, w Write) (*M, error)
	// Get returns the state that prior has become, or [engine.ErrNotFound].
	Get func(ctx context.Context, r reconcile.Reconciler, prior M) (M, error)
	// Remove removes it. What is gone already is no error.
	Remove func(ctx context.Context, r reconcile.Reconciler, state M, diags *diag.Diagnostics) error
}

// Model is the data of a resource that belongs to a cluster.
type Model interface {
	// InCluster is the cluster that it belongs to.
	InCluster() ClusterReference
	// Limits are the timeouts that are declared.
	Limits() timeouts.Value
	// IdentityData is the resource's identity.
	IdentityData() any
	// Title names it in an error, such as: GPU pool "v100".
	Title() string
}

// Unable is the summary of an error: that something can't be done with a resource.
func Unable(do string, m Model) string { return fmt.Sprintf("Unable to %s %s", do, m.Title()) }

// Create creates it, or adopts what is there as it is planned.
func (e *Entity[M]) Create(ctx context.Context, req resource.CreateRequest, resp *resource.CreateResponse) {
	e.write(ctx, creationOf(req, resp))
}

// Update makes it be as planned.
func (e *Entity[M]) Update(ctx context.Context, req resource.UpdateRequest, resp *resource.UpdateResponse) {
	e.write(ctx, updateOf(req, resp))
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
}

// within bounds an operation by its timeout.
func within(ctx context.Context, limit func(context.Context, time.Duration) (time.Duration, diag.Diagnostics), fallback time.Duration, diags *diag.Diagnostics) (context.Context, context.CancelFunc) {
	timeout, malformed := limit(ctx, fallback)
	diags.Append(malformed...)
	return context.WithTimeout(ctx, timeout)
}

// Read reads it. Only what is definitely gone leaves the state.
func (e *Entity[M]) Read(ctx context.Context, req resource.ReadRequest, resp *resource.ReadResponse) {
	var prior M
	if resp.Diagnostics.Append(req.State.Get(ctx, &prior)...); resp.Diagnostics.HasError() {
		return
	}
	// The framework insists on an identity even for what is gone.
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
	case !reflect.DeepEqual(state, prior): // what did not change is left as it is: to write large maps anew takes a while
		resp.Diagnostics.Append(resp.State.Set(ctx, state)...)
	}
}

// Delete removes it.
func (e *Entity[M]) Delete(ctx context.Context, req resource.DeleteRequest, resp *resource.DeleteResponse) {
	var state M
	if resp.Diagnostics.Append(req.State.Get(ctx, &state)...); resp.Diagnostics.HasError() {
		return
	}
	ctx, cancel := within(ctx, state.Limits().Delete, e.Timeout, &resp.Diagnostics)
	defer cancel()
	reconciler, err := Reach(ctx, e.Session.Open, state.InCluster(), resp.Private)
	if err == nil {
		err = e.Remove(ctx, reconciler, state, &resp.Diagnostics)
	}
	if err != nil {
		AddError(&resp.Diagnostics, Unable("remove", state), err)
	}
}
