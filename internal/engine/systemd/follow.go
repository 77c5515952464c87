package systemd

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"

	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/systemd/relay"
)

// logMark is the position of a reader in a log: a mark of the host that has it.
type logMark struct {
	Host string `json:"host"`
	Mark string `json:"mark"`
}

// Follow returns what a member wrote after a mark, from whichever host has its log. A member that was moved has another
// log on its new host. Until that begins, the mark stays.
func (e *Engine) Follow(ctx context.Context, member string, from engine.LogPlace) (engine.LogPart, error) {
	var after logMark
	if from.Mark != "" {
		if err := json.Unmarshal([]byte(from.Mark), &after); err != nil {
			return engine.LogPart{}, fmt.Errorf("the log of member %q: %q is not a mark of this engine", member,
				from.Mark)
		}
	}
	p, err := e.whole(ctx)
	if err != nil {
		return engine.LogPart{}, err
	}
	question := relay.FollowQuery{Member: member, From: from}
	others := p
	var unreached error
	if _, stays := p.hosts[after.Host]; stays {
		question.From.Mark = after.Mark
		part, err := askHost(ctx, e, p, after.Host, relay.Follow, question)
		switch {
		case errors.Is(err, engine.ErrUnreachable): // the member may have been moved
			unreached, others.hosts = err, maps.Clone(p.hosts)
			delete(others.hosts, after.Host) // asked without a mark, it would repeat what was read
		case !hasNone(err):
			return onHost(after.Host, part), err
		}
	}
	question.From.Mark = ""
	found, failed := askAll(ctx, e, others, relay.Follow, question)
	for name, part := range found {
		part = onHost(name, part)
		part.Next = cmp.Or(part.Next, from.Mark)
		return part, nil
	}
	if unreached != nil {
		failed[after.Host] = unreached
	}
	if err := besides(failed, hasNone); err != nil {
		return engine.LogPart{}, err
	}
	return engine.LogPart{}, fmt.Errorf("member %q of cluster %q: %w", member, e.ref.Name, engine.ErrNotFound)
}

// onHost returns a part of a log with its host's mark; without one if nothing was written yet.
func onHost(name string, part engine.LogPart) engine.LogPart {
	if part.Next != "" {
		mark, err := json.Marshal(logMark{name, part.Next})
		if err == nil {
			part.Next = string(mark)
		}
	}
	return part
}
