package group

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/trainyard/terraform-provider-trainyard/internal/provider/resourcekit"
	"github.com/trainyard/terraform-provider-trainyard/internal/reconcile"
)

const (
	// leavingKey is the key in a group's private state for the members that should leave unusable
	// GPUs, as of the last read.
	leavingKey = "leaving"
	// needsApplyKey is the key for whether an apply would change something.
	needsApplyKey = "amiss"
)

// remember stores what a plan has to know of a group as read, besides the state.
func remember(ctx context.Context, private resourcekit.PrivateState, group reconcile.Group) error {
	var encoded []byte
	var err error
	if leaving := group.Leaving(); len(leaving) > 0 {
		encoded, err = json.Marshal(leaving)
	}
	var needsApply []byte
	if group.NeedsApply() {
		needsApply = []byte("true")
	}
	return errors.Join(err, resourcekit.PrivateError(private.SetKey(ctx, leavingKey, encoded)),
		resourcekit.PrivateError(private.SetKey(ctx, needsApplyKey, needsApply)),
		resourcekit.Remember(ctx, private, group.ClusterID))
}

// recallNeedsApply returns whether an apply would change something about a group.
func recallNeedsApply(ctx context.Context, private resourcekit.PrivateState) (bool, error) {
	stored, diags := private.GetKey(ctx, needsApplyKey)
	return len(stored) > 0, resourcekit.PrivateError(diags)
}

// recallLeaving returns the members of a group that should leave unusable GPUs.
func recallLeaving(ctx context.Context, private resourcekit.PrivateState) ([]string, error) {
	stored, diags := private.GetKey(ctx, leavingKey)
	if err := resourcekit.PrivateError(diags); err != nil || len(stored) == 0 {
		return nil, err
	}
	var leaving []string
	if err := json.Unmarshal(stored, &leaving); err != nil {
		return nil, fmt.Errorf("the resource's private state: %w", err)
	}
	return leaving, nil
}
