package engine

import (
	"context"
	"fmt"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
)

// Joiner is implemented by engines whose clusters hosts can join by themselves.
type Joiner interface {
	// JoinToken returns what a host needs to join the cluster in a role, or [ErrNotFound] if there is no such cluster.
	JoinToken(ctx context.Context, role domain.HostRole) (JoinToken, error)
}

// JoinToken is what a host needs to join a cluster.
type JoinToken struct {
	Token Secret
	// Managers are the addresses, as host:port, of the managers that accept it.
	Managers []string
}

// RequestJoinToken returns what a host needs to join an engine's cluster; see [Joiner].
func RequestJoinToken(ctx context.Context, e Engine, role domain.HostRole) (JoinToken, error) {
	joiner, ok := e.(Joiner)
	if !ok {
		return JoinToken{}, fmt.Errorf("the engine %q has no join tokens: hosts do not join its clusters by themselves",
			e.Traits().Name)
	}
	return joiner.JoinToken(ctx, role)
}
