package resourcekit

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/hashicorp/terraform-plugin-framework/diag"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
	"github.com/trainyard/terraform-provider-trainyard/internal/reconcile"
)

// clusterIDKey is the key in a resource's private state for the ID of its cluster, so that a resource in another
// cluster is not taken for deleted.
const clusterIDKey = "cluster_id"

// PrivateState is the private state of a resource.
type PrivateState interface {
	GetKey(ctx context.Context, key string) ([]byte, diag.Diagnostics)
	SetKey(ctx context.Context, key string, value []byte) diag.Diagnostics
}

// Recognise returns an [*engine.ElsewhereError] if the engine reaches another cluster than the one that a
// resource was last seen in.
func Recognise(ctx context.Context, eng engine.Hosts, private PrivateState) error {
	id, err := recall(ctx, private, clusterIDKey)
	if err != nil || id == "" {
		return err
	}
	return eng.Recognise(ctx, id)
}

// Reach opens the cluster of a resource. It has to be the one in the private state, which is updated.
func Reach(
	ctx context.Context, open func(domain.ClusterRef) (reconcile.Reconciler, error), cluster ClusterReference,
	private PrivateState,
) (reconcile.Reconciler, error) {
	reconciler, err := open(cluster.Key())
	if err != nil {
		return reconciler, err
	}
	if err := Recognise(ctx, reconciler.Engine, private); err != nil {
		return reconciler, err
	}
	document, err := engine.Cluster(ctx, reconciler.Engine)
	if err != nil && !errors.Is(err, engine.ErrNotFound) {
		return reconciler, err
	}
	return reconciler, Remember(ctx, private, document.Spec.ID)
}

// Remember stores the ID of the cluster that a resource was seen in; "" is unknown, and not stored.
func Remember(ctx context.Context, private PrivateState, id string) error {
	if id == "" {
		return nil
	}
	return keep(ctx, private, clusterIDKey, id)
}

// recall returns a string in private state, empty if there is none.
func recall(ctx context.Context, private PrivateState, key string) (value string, err error) {
	stored, diags := private.GetKey(ctx, key)
	if err := PrivateError(diags); err != nil || len(stored) == 0 {
		return "", err
	}
	if err := json.Unmarshal(stored, &value); err != nil {
		return "", fmt.Errorf("the resource's private state: %w", err)
	}
	return value, nil
}

// keep stores a string in private state.
func keep(ctx context.Context, private PrivateState, key, value string) error {
	encoded, err := json.Marshal(value)
	if err != nil {
		return err
	}
	return PrivateError(private.SetKey(ctx, key, encoded))
}

// PrivateError returns the diagnostics about private state as an error.
func PrivateError(diags diag.Diagnostics) error {
	if !diags.HasError() {
		return nil
	}
	first := diags.Errors()[0]
	return fmt.Errorf("the resource's private state: %s: %s", first.Summary(), first.Detail())
}
