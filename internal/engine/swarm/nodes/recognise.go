package nodes

import (
	"context"
	"errors"
	"fmt"

	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
)

// Recognise returns an [*engine.ElsewhereError] if the endpoint leads to another Swarm than the one with this ID. The
// cluster's document has the ID of its Swarm; without a document, the Swarm itself is asked.
func (e Hosts) Recognise(ctx context.Context, id string) error {
	document, err := engine.Cluster(ctx, e.Items)
	found := document.Spec.ID
	if errors.Is(err, engine.ErrNotFound) {
		is, asked := e.Inspect(ctx)
		if errors.Is(asked, engine.ErrNotFound) {
			return nil // no Swarm is left
		}
		found, err = is.ID, asked
	}
	if err != nil || found == "" || found == id {
		return err
	}
	return &engine.ElsewhereError{
		Where:    fmt.Sprintf("the Swarm %s", found),
		Expected: fmt.Sprintf("the Swarm %s, in which cluster %q is", id, e.Cluster),
	}
}
