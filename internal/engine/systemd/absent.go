package systemd

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"time"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/systemd/relay"
)

// lostAfter is how long the controller tolerates an unreachable host before its members are placed elsewhere: longer
// than a lease, or a short network outage.
const lostAfter = time.Minute

// absence is what the controller has found out about unreachable hosts.
type absence struct {
	// Since is when each of them became unreachable, and Lost are those given up until they are back.
	Since map[string]time.Time `json:"since"`
	Lost  map[string]bool      `json:"lost,omitempty"`
	// Forgotten are those that a user has declared gone for good.
	Forgotten map[string]bool `json:"forgotten,omitempty"`
}

// absence returns what the controller has found out.
func (e *Engine) absence(ctx context.Context) (found absence, item engine.Item, err error) {
	item, err = e.Get(ctx, relay.AbsentKey)
	if errors.Is(err, engine.ErrNotFound) {
		return absence{}, engine.Item{Key: relay.AbsentKey}, nil
	}
	if err == nil {
		if errData := json.Unmarshal(item.Data, &found); errData != nil {
			err = &engine.CorruptError{Where: item.Where, Err: errData}
		}
	}
	return found, item, err
}

// amendAbsence stores what the controller has found out after a change of it, unless that reports that nothing changed.
func (e *Engine) amendAbsence(ctx context.Context, change func(*absence) (changed bool)) error {
	for {
		found, item, err := e.absence(ctx)
		if err != nil || !change(&found) {
			return err
		}
		if item.Data, err = json.Marshal(found); err != nil {
			return err
		}
		if _, err = e.Put(ctx, item); !errors.Is(err, engine.ErrConflict) {
			return err
		}
	}
}

// next returns the absence after another check, given for how long each unreachable host has been so for this
// controller. A controller that reaches less than half of the hosts gives none up, as it may be the one that is cut
// off; and time before it began to check does not count, as all may have been down.
func (a absence) next(
	hosts map[string]domain.Host, unreached map[string]time.Duration, now time.Time,
) absence {
	next := absence{Since: map[string]time.Time{}, Lost: map[string]bool{}, Forgotten: map[string]bool{}}
	for name, noticed := range unreached {
		since, before := a.Since[name]
		if !before {
			since = now
		}
		next.Since[name] = since
		if a.Lost[name] || noticed >= lostAfter && 2*len(unreached) <= len(hosts) {
			next.Lost[name] = true
		}
		if a.Forgotten[name] {
			next.Forgotten[name] = true
		}
	}
	return next
}

// keepLost keeps a host lost that was lost before, although it answers.
func (a absence) keepLost(name string, before absence) {
	if before.Lost[name] {
		a.Since[name], a.Lost[name] = before.Since[name], true
	}
}

// equal reports whether two findings are the same.
func (a absence) equal(b absence) bool {
	return maps.EqualFunc(a.Since, b.Since, time.Time.Equal) && maps.Equal(a.Lost, b.Lost) &&
		maps.Equal(a.Forgotten, b.Forgotten)
}
