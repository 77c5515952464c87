package reconcile

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
)

// roomRetry is how soon an apply that waits for room tries again without an event.
const roomRetry = 2 * time.Second

// RoomError means that a group waited for room that roles of lower priority can give, and got none in time.
type RoomError struct {
	Group string
	// Waited is for how long.
	Waited time.Duration
	// Lacks is what it had no room for, and Answer the controller's last answer, or "".
	Lacks  error
	Answer string
	Cause  error
}

// Error says what it waited for.
func (e *RoomError) Error() string {
	answer := e.Answer
	if answer == "" {
		answer = "the cluster's controller has not answered: check its log"
	}
	return fmt.Sprintf(
		"group %q waited %s for room, and nothing in it was changed (%s): %v. Raise timeouts, or apply again: %v",
		e.Group, e.Waited.Round(time.Second), answer, e.Lacks, e.Cause,
	)
}

// Unwrap returns what ended the wait.
func (e *RoomError) Unwrap() error { return e.Cause }

// claimFor returns what a group without room gets once roles of lower priority have yielded, and the claims that come
// before it. Its Refusal is the reason why it can't be had, with what would help.
func (r Reconciler) claimFor(
	ctx context.Context, view View, group domain.Group, lacks domain.Problems,
) (claim Claim, before []Claim, err error) {
	y, err := r.Yielders(ctx)
	if err != nil || len(y.Policies) == 0 {
		return Claim{Refusal: lacks}, nil, err
	}
	if usesGPUs(group) {
		found, err := r.Engine.GPUs(ctx)
		if err != nil {
			return Claim{}, nil, err
		}
		view.Devices = DeviceStates(view.Pools, found, view.occupants(), view.Stored)
	}
	if before, err = r.claimsBefore(ctx, view, group); err != nil {
		return Claim{}, nil, err
	}
	turn := make([]domain.RoomRequest, 0, len(before)+1)
	for _, c := range before {
		turn = append(turn, c.Request)
	}
	claims := view.Claims(append(turn, domain.RoomRequest{Spec: group}), y)
	if claim = claims[len(claims)-1]; claim.Refusal != nil {
		if hint := view.Hint(domain.RoomRequest{Spec: group}, y); hint != "" {
			lacks = slices.Clone(lacks)
			lacks[0].Detail += ". There would be room: " + hint
		}
		claim.Refusal = lacks
	}
	return claim, before, nil
}

// PlanRoom is [Reconciler.Decide] for a plan: a group without room is decided as it will be once roles of lower
// priority have yielded. The claim says who yields; it is empty for a group that has room.
func (r Reconciler) PlanRoom(
	ctx context.Context, view View, spec domain.Group,
) (decision Decision, claim Claim, problems domain.Problems, err error) {
	decision, problems, err = r.Decide(ctx, view, spec)
	if err != nil || problems.Err() == nil {
		return decision, Claim{}, problems, err
	}
	claim, _, err = r.claimFor(ctx, view, spec, problems)
	switch {
	case errors.Is(err, engine.ErrNotFound), errors.Is(err, engine.ErrNotFormed): // the cluster has yet to be created
		return decision, Claim{}, problems, nil
	case err != nil:
		return decision, Claim{}, nil, err
	}
	if refused, is := errors.AsType[domain.Problems](claim.Refusal); is {
		return decision, Claim{}, refused, nil
	}
	return claim.Decision, claim, claim.Warnings, nil
}

// allocate decides about the group and stores the decision, under the cluster's allocation lock. For a rollback, back
// replaces the stored document. A group without room waits if roles of lower priority can yield.
func (r Reconciler) allocate(
	ctx context.Context, spec domain.Group, back *domain.GroupDocument,
) (decision Decision, observed []domain.Observed, err error) {
	decision, observed, err = r.allocateNow(ctx, spec, back)
	lacks, refused := errors.AsType[domain.Problems](err)
	if !refused || back != nil {
		return decision, observed, err
	}
	wait, err := r.newRoomWait(ctx, spec, lacks)
	if err != nil {
		return decision, observed, err
	}
	defer func() { err = errors.Join(err, wait.end(ctx)) }()
	return wait.allocate(ctx)
}

// roomWait is an apply that waits for room.
type roomWait struct {
	Reconciler

	request domain.RoomRequest
	since   time.Time
	lacks   error
}

// newRoomWait stores a group's request for room. It returns lacks if nobody can yield.
func (r Reconciler) newRoomWait(ctx context.Context, spec domain.Group, lacks domain.Problems) (*roomWait, error) {
	cluster, err := engine.Cluster(ctx, r.Engine)
	if err != nil {
		return nil, err
	}
	view, err := r.View(ctx, cluster.Spec, spec)
	if err != nil {
		return nil, err
	}
	w := &roomWait{
		Reconciler: r, since: time.Now(), lacks: lacks,
		request: domain.RoomRequest{Spec: spec, Since: time.Now().UTC().Round(0)},
	}
	claim, before, err := r.claimFor(ctx, view, spec, lacks)
	switch {
	case err != nil:
		return nil, err
	case claim.Refusal != nil:
		return nil, claim.Refusal
	case len(claim.Gone) == 0 && len(before) == 0:
		return nil, lacks // lacks something other than room
	}
	if err := r.Engine.StartController(ctx); err != nil {
		return nil, err
	}
	r.say(ctx, spec.Name, "waiting for room", slog.String("yields", claim.Yields(view)),
		slog.String("lacks", lacks.Error()))
	w.request, err = r.putRequest(ctx, w.request)
	return w, err
}

// putRequest stores a request for room over any earlier one, and returns it with the answer so far.
func (r Reconciler) putRequest(ctx context.Context, request domain.RoomRequest) (domain.RoomRequest, error) {
	for {
		stored, err := engine.Get[domain.RoomRequest](ctx, r.Engine, request.Spec.Name)
		switch {
		case err == nil && stored.Asks(request):
			return stored, nil
		case err != nil && !errors.Is(err, engine.ErrNotFound):
			return request, err
		}
		if request.Revision = stored.Revision; stored.Since.Equal(request.Since) {
			request.Answer = stored.Answer
		}
		if stored, err = engine.Put(ctx, r.Engine, request); !errors.Is(err, engine.ErrConflict) {
			return stored, err
		}
	}
}

// requestEnd bounds the removal of a request, as the context of the apply may be done by then.
const requestEnd = 10 * time.Second

// end deletes the request. If that fails, the controller deletes it once nobody holds the group.
func (w *roomWait) end(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), requestEnd)
	defer cancel()
	return engine.Delete[domain.RoomRequest](ctx, w.Engine, w.request.Spec.Name)
}

// allocate repeats [Reconciler.allocateNow] until there is room. It holds the group's lock, which keeps the controller
// from looking after the group.
func (w *roomWait) allocate(ctx context.Context) (decision Decision, observed []domain.Observed, err error) {
	spec := w.request.Spec
	err = w.watch(ctx, spec.Name, func([]domain.Observed) (bool, time.Time, error) {
		next := time.Now().Add(roomRetry)
		if decision, observed, err = w.allocateNow(ctx, spec, nil); err == nil {
			return true, next, nil
		}
		lacks, refused := errors.AsType[domain.Problems](err)
		if !refused {
			return false, next, err
		}
		w.lacks = lacks
		if w.request, err = w.putRequest(ctx, w.request); err != nil {
			return false, next, err
		}
		return false, next, w.keep(ctx)
	})
	if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		err = &RoomError{
			Group: spec.Name, Waited: time.Since(w.since), Lacks: w.lacks, Answer: w.request.Answer,
			Cause: context.Cause(ctx),
		}
	}
	return decision, observed, err
}

// keep does what the controller would do for the group, if it exists already.
func (w *roomWait) keep(ctx context.Context) error {
	group, err := w.Read(ctx, w.request.Spec.Name)
	if errors.Is(err, engine.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	lost, err := w.lostHostsOf(ctx, group)
	if err != nil {
		return err
	}
	_, err = w.act(ctx, group, lost)
	if _, unplaced := errors.AsType[*UnplacedError](err); unplaced {
		return nil // the host may come back
	}
	return err
}

// behindClaims decides again about a group with new members, so that they take nothing that earlier requests are to
// get. If existing members move as well, the decision stays: they need a place before anybody else.
func (r Reconciler) behindClaims(ctx context.Context, view View, decision Decision, by *gpuReport) (Decision, error) {
	before, stored := view.Groups[decision.Document.Spec.Name], decision.Document
	added := false
	for member, at := range stored.Assignments {
		former, there := before.Assignments[member]
		added = added || !there
		if there && former != at {
			return decision, nil
		}
	}
	if !added {
		return decision, nil
	}
	claims, err := r.claimsBefore(ctx, view, stored.Spec)
	if err != nil || len(claims) == 0 {
		return decision, err
	}
	view = view.WithClaims(claims)
	view.Pinned = true
	next, problems, err := r.decide(view, stored.Spec, by)
	if err != nil || problems.Err() == nil {
		return next, err
	}
	refused := slices.Clone(problems)
	for i := range refused {
		refused[i].Detail = claimed(refused[i].Detail, claims)
	}
	return decision, refused
}

// Abandoned deletes a request for room whose apply has died, which is the case if nobody holds the group's lock.
func (r Reconciler) Abandoned(ctx context.Context, request domain.RoomRequest) (removed bool, err error) {
	release, free, err := r.tryLock(ctx, GroupLock(request.Spec.Name),
		"removal of a request for room of group "+request.Spec.Name)
	if err != nil || !free {
		return false, err
	}
	defer func() { err = errors.Join(err, release()) }()
	stored, err := engine.Get[domain.RoomRequest](ctx, r.Engine, request.Spec.Name)
	if errors.Is(err, engine.ErrNotFound) {
		return true, nil
	}
	if err != nil || !stored.Since.Equal(request.Since) {
		return false, err
	}
	return true, engine.Delete[domain.RoomRequest](ctx, r.Engine, request.Spec.Name)
}
