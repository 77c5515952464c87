package resourcekit

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/tfsdk"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
)

const (
	// ownerKey is the key in a resource's private state for its token, see [domain.Ownership].
	ownerKey = "owner"
	// ownershipTimeout limits the record of an ownership after a write, whose context may be done.
	ownershipTimeout = 30 * time.Second
)

// Own records that the object of a write belongs to this instance of the resource from now on. That comes last: until
// then the object belongs to the former instance, so that whatever an apply that dies leaves behind can be destroyed.
// The exception is a death between this and Terraform's write of its state, after which the object has to be imported.
func (r *Resource) Own(ctx context.Context, cluster domain.ClusterRef, w Write) {
	if w.State.Raw.IsNull() || !w.Created && w.Diags.HasError() {
		return // nothing exists, or it is owned already
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), ownershipTimeout)
	defer cancel()
	object, err := r.object(ctx, *w.State)
	if err == nil {
		err = r.own(ctx, cluster, object, w)
	}
	if err != nil {
		AddError(w.Diags, "Unable to record the owner", fmt.Errorf("trainyard_%s exists, but: %w\n\nIf it was just "+
			"created, Terraform would replace it: run terraform untaint with its address to keep it", object, err))
	}
}

func (r *Resource) own(ctx context.Context, cluster domain.ClusterRef, object string, w Write) error {
	owner, err := recall(ctx, w.Private, ownerKey)
	if err != nil {
		return err
	}
	if w.Created || owner == "" {
		owner = rand.Text()
	}
	reconciler, err := r.Session.Open(cluster)
	if err != nil {
		return err
	}
	if err := claim(ctx, reconciler.Engine, domain.Ownership{Object: object, Owner: owner}); err != nil {
		return err
	}
	return keep(ctx, w.Private, ownerKey, owner)
}

// claim stores an ownership in place of the present one. It does nothing if there is no cluster.
func claim(ctx context.Context, store engine.Store, next domain.Ownership) error {
	for {
		stored, err := engine.Get[domain.Ownership](ctx, store, next.Key())
		if err != nil && !errors.Is(err, engine.ErrNotFound) {
			return err
		}
		if stored.Owner == next.Owner {
			return nil
		}
		next.Header = stored.Header
		switch _, err = engine.Put(ctx, store, next); {
		case errors.Is(err, engine.ErrNotFound):
			return nil
		case !errors.Is(err, engine.ErrConflict):
			return err
		}
	}
}

// RememberOwner remembers whom an object as read belongs to, if this instance has no token: it was imported, and stands
// for the owner.
func (r *Resource) RememberOwner(
	ctx context.Context, store engine.Store, state tfsdk.State, private PrivateState,
) error {
	owner, err := recall(ctx, private, ownerKey)
	if err != nil || owner != "" {
		return err
	}
	stored, err := r.ownership(ctx, store, state)
	if err != nil || stored.Owner == "" {
		return err
	}
	return keep(ctx, private, ownerKey, stored.Owner)
}

// IfOwned calls remove unless the object belongs to another instance, which is a warning. An instance without a token,
// and an object without an owner, count as owned.
func (r *Resource) IfOwned(
	ctx context.Context, store engine.Store, state tfsdk.State, private PrivateState, diags *diag.Diagnostics,
	remove func() error,
) error {
	owner, err := recall(ctx, private, ownerKey)
	if err != nil {
		return err
	}
	stored, err := r.ownership(ctx, store, state)
	if err != nil {
		return err
	}
	if owner != "" && stored.Owner != "" && stored.Owner != owner {
		diags.AddWarning("Belongs to another instance", fmt.Sprintf("trainyard_%s was left as it is: it belongs to the "+
			"instance of the resource that created, adopted or changed it last. With create_before_destroy, a "+
			"replacement under the same name adopts what exists, and restarts nothing.", stored.Object))
		return nil
	}
	if stored.Owner == "" {
		return remove()
	}
	// Before the object, so that nothing is left of an object that is gone.
	if err := engine.Delete[domain.Ownership](ctx, store, stored.Key()); err != nil {
		return err
	}
	if err = remove(); err == nil && !diags.HasError() {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), ownershipTimeout)
	defer cancel()
	return errors.Join(err, claim(ctx, store, domain.Ownership{Object: stored.Object, Owner: stored.Owner}))
}

// ownership returns the stored ownership of an object, empty if there is none.
func (r *Resource) ownership(
	ctx context.Context, store engine.Store, state tfsdk.State,
) (stored domain.Ownership, err error) {
	if stored.Object, err = r.object(ctx, state); err != nil {
		return stored, err
	}
	found, err := engine.Get[domain.Ownership](ctx, store, stored.Key())
	if errors.Is(err, engine.ErrNotFound) {
		return stored, nil
	}
	return found, err
}

// object names what a resource manages in its cluster.
func (r *Resource) object(ctx context.Context, state tfsdk.State) (string, error) {
	var id types.String
	if diags := state.GetAttribute(ctx, path.Root("id"), &id); diags.HasError() {
		return "", errors.New(diags.Errors()[0].Detail())
	}
	return r.name + " " + id.ValueString(), nil
}
