//go:build linux

package process

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/trainyard/terraform-provider-trainyard/internal/agent/statedir"
	"github.com/trainyard/terraform-provider-trainyard/internal/bounded"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
)

// Logs returns the end of a member's log.
func (e *Engine) Logs(_ context.Context, member string, options engine.LogOptions) ([]string, error) {
	_, err := os.Stat(e.dir.Document(statedir.Specs, member))
	if os.IsNotExist(err) {
		return nil, fmt.Errorf("member %q of cluster %q: %w", member, e.dir.Cluster, engine.ErrNotFound)
	}
	if err != nil {
		return nil, err
	}
	lines, err := e.dir.ReadLog(member, options)
	if _, tooMuch := errors.AsType[*bounded.Error](err); tooMuch {
		return nil, fmt.Errorf("the log of member %q has %w", member, err)
	}
	return lines, err
}

// Follow returns what a member wrote after a mark.
func (e *Engine) Follow(_ context.Context, member string, from engine.LogPlace) (engine.LogPart, error) {
	if there, err := e.isThere(member); err != nil || !there {
		return engine.LogPart{}, cmp.Or(err,
			fmt.Errorf("member %q of cluster %q: %w", member, e.dir.Cluster, engine.ErrNotFound))
	}
	var since time.Time
	if from.Mark == "" && from.Run > 0 {
		state, err := statedir.Read[statedir.State](e.dir.Document(statedir.States, member))
		if err = unlessGone(err); err != nil {
			return engine.LogPart{}, err
		}
		if state.Run < from.Run || state.RunStartedAt == nil { // without a state, it has not reached any run
			return engine.LogPart{}, nil
		}
		since = *cmp.Or(state.LogFrom, state.RunStartedAt)
	}
	return e.dir.FollowLog(member, from, since)
}

// isThere reports whether a member was staged or started. It checks twice, since a member that is being started moves
// from one folder to the other.
func (e *Engine) isThere(member string) (bool, error) {
	for _, folder := range []string{statedir.Specs, statedir.Staged, statedir.Specs} {
		if _, err := os.Stat(e.dir.Document(folder, member)); !os.IsNotExist(err) {
			return err == nil, err
		}
	}
	return false, nil
}

func unlessGone(err error) error {
	if errors.Is(err, engine.ErrNotFound) {
		return nil
	}
	return err
}
