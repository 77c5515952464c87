package reconcile

import (
	"context"
	"log/slog"
)

// say logs what is done about a group. Only names and numbers are logged, as specifications may hold secrets.
func (r Reconciler) say(ctx context.Context, group, what string, args ...any) {
	if r.Logger != nil {
		r.Logger.DebugContext(ctx, what, append([]any{slog.String("group", group)}, args...)...)
	}
}

// byAction groups the changed members by action, as log arguments.
func byAction(changes []Change) []any {
	members := map[Action][]string{}
	var order []Action
	for _, c := range changes {
		if members[c.Action] == nil {
			order = append(order, c.Action)
		}
		members[c.Action] = append(members[c.Action], c.Member)
	}
	var args []any
	for _, action := range order {
		args = append(args, slog.Any(string(action), members[action]))
	}
	return args
}
