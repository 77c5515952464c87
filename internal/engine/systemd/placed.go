package systemd

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/systemd/relay"
)

// placedKind is the kind of the records of a group's members that don't depend on their hosts: which there are, where,
// and how they ended. They describe the members of unreachable hosts, and tell which members have to be ended on a host
// that is back.
var placedKind = domain.Kind{Name: "placed", Noun: "placement of group"}

// placed are the members of a group by name.
type placed map[string]domain.Observed

// placedOf returns the recorded members of a group, or of all groups if group is empty, by group.
func (e *Engine) placedOf(ctx context.Context, group string) (map[string]placed, error) {
	var items []engine.Item
	var err error
	if group == "" {
		items, err = e.List(ctx, placedKind)
	} else {
		var item engine.Item
		if item, err = e.Get(ctx, engine.Key{Kind: placedKind, Name: group}); err == nil {
			items = append(items, item)
		}
	}
	if err != nil && !errors.Is(err, engine.ErrNotFound) {
		return nil, err
	}
	groups := make(map[string]placed, len(items))
	for _, item := range items {
		var members placed
		if err := json.Unmarshal(item.Data, &members); err != nil {
			return nil, &engine.CorruptError{Where: item.Where, Err: err}
		}
		groups[item.Name] = members
	}
	return groups, nil
}

// record applies a change to the recorded members of a group.
func (e *Engine) record(ctx context.Context, group string, change func(members placed)) error {
	return alter(ctx, e, engine.Key{Kind: placedKind, Name: group}, change)
}

// alter applies a change to an item that holds a map, and stores the item if it differs. Concurrent changes are all
// applied.
func alter[M ~map[string]V, V any](ctx context.Context, e *Engine, key engine.Key, change func(M)) error {
	for {
		item, err := e.Get(ctx, key)
		if err != nil && !errors.Is(err, engine.ErrNotFound) {
			return err
		}
		before := M{}
		if err == nil {
			if err := json.Unmarshal(item.Data, &before); err != nil {
				return &engine.CorruptError{Where: item.Where, Err: err}
			}
		}
		after := maps.Clone(before)
		change(after)
		switch {
		case reflect.DeepEqual(before, after):
			return nil
		case len(after) == 0:
			return e.Delete(ctx, key)
		}
		item.Key = key
		if item.Data, err = json.Marshal(after); err != nil {
			return err
		}
		if _, err = e.Put(ctx, item); !errors.Is(err, engine.ErrConflict) {
			return err
		}
	}
}

// remembered adds the recorded members of hosts that are away to those that were found. Other errors of hosts are
// returned.
func (e *Engine) remembered(
	ctx context.Context, group string, found map[string][]domain.Observed, failed map[string]error,
) error {
	reasons := maps.Clone(failed)
	if err := besidesAway(failed); err != nil || len(reasons) == 0 {
		return err
	}
	groups, err := e.placedOf(ctx, group)
	if err != nil {
		return err
	}
	for _, members := range groups {
		for _, o := range members {
			if reason, away := reasons[o.Host]; away {
				found[o.Host] = append(found[o.Host], onAway(o, reason))
			}
		}
	}
	return nil
}

// onAway returns a recorded member of a host that is away. If the host has to be set up again, a member that has not
// ended is no longer as it should be, so that an apply starts it again.
func onAway(o domain.Observed, reason error) domain.Observed {
	o.HostTrouble = fmt.Sprintf("host %s can't be reached", o.Host)
	if errors.Is(reason, relay.ErrOutside) {
		o.HostTrouble = fmt.Sprintf("host %s has to be set up again by an apply of the cluster", o.Host)
		if !o.State.Ended() {
			o.Hash, o.Run = "", 0
		}
	}
	return o
}

// forget removes the records of members.
func (e *Engine) forget(ctx context.Context, names []string) error {
	groups, err := e.placedOf(ctx, "")
	if err != nil {
		return err
	}
	for group, members := range groups {
		if !slices.ContainsFunc(names, func(name string) bool { return members[name].Name != "" }) {
			continue
		}
		err := e.record(ctx, group, func(members placed) {
			for _, name := range names {
				delete(members, name)
			}
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// note records how members have ended since, as reported by the hosts.
func (e *Engine) note(ctx context.Context, found map[string][]domain.Observed) error {
	groups, err := e.placedOf(ctx, "")
	if err != nil {
		return err
	}
	seen := map[string]map[string]domain.Observed{}
	for _, here := range found {
		for _, o := range here {
			known := groups[o.Group][o.Name]
			if known.Host == o.Host && known.Run == o.Run && (o.State.Ended() || known.State.Ended()) &&
				known.State != o.State {
				if seen[o.Group] == nil {
					seen[o.Group] = map[string]domain.Observed{}
				}
				o.Instance = ""
				seen[o.Group][o.Name] = o
			}
		}
	}
	for group, ended := range seen {
		err := e.record(ctx, group, func(members placed) {
			for name, o := range ended {
				if known := members[name]; known.Host == o.Host && known.Run == o.Run {
					members[name] = o
				}
			}
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// strays returns the members that are in force on hosts but should not be, by host: those that were moved or removed
// while the host was away.
func strays(found map[string][]domain.Observed, groups map[string]placed) map[string][]string {
	strays := map[string][]string{}
	for name, here := range found {
		for _, o := range here {
			if o.Run > 0 && groups[o.Group][o.Name].Host != name {
				strays[name] = append(strays[name], o.Name)
			}
		}
	}
	return strays
}

// stagedMembers are the members that a start puts in force, as they are known before they run.
func stagedMembers(staged map[string][]domain.Observed) placed {
	members := placed{}
	for _, here := range staged {
		for _, o := range here {
			members[o.Name] = o
		}
	}
	return members
}

// recordStart records where the members of a group are from now on.
func (e *Engine) recordStart(ctx context.Context, group string, staged map[string][]domain.Observed) error {
	next := stagedMembers(staged)
	if len(next) == 0 {
		return nil
	}
	return e.record(ctx, group, func(members placed) { maps.Copy(members, next) })
}
