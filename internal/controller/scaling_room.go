package controller

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/trainyard/terraform-provider-trainyard/internal/autoscale"
	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
	"github.com/trainyard/terraform-provider-trainyard/internal/reconcile"
)

const (
	// sharingAgain is how soon it is decided anew who gives way while somebody waits for room, without any event.
	sharingAgain = 2 * time.Second
	// roomPatience bounds how long it may take to tell for how many more members there is room.
	roomPatience = 5 * time.Second
	// usualRefusal is how long a role that could not give way is not asked again: others may do so meanwhile.
	usualRefusal = 15 * time.Second
)

// sharing is what a scaler knows of those who wait for room.
type sharing struct {
	// requests are those that wait, and seen is when each was first read. Empty where nobody waits.
	requests map[string]domain.RoomRequest
	seen     map[string]time.Time
	// last is when the newest of them was first read.
	last time.Time
	// again is when to decide anew who gives way, deciding tells that this is being done, and shares is what comes of
	// it.
	again    time.Time
	deciding bool
	shares   chan share
}

// share is what was decided about those who wait for room.
type share struct {
	claims []reconcile.Claim
	counts map[string]int // by the keys of policies
	err    error
}

// yielding is what a policy has to do with others' need of room.
type yielding struct {
	// wanted is what is wanted of it, and members are those that go; nil where nobody needs any.
	wanted  *autoscale.Yield
	members []string
	// spare is the count to which the role can be brought by what its guards were told at a moment.
	spare   reconcile.Stay
	spareAt time.Time
	// refused is why it could not give way, until a moment, and going tells that members go for somebody.
	refused      string
	refusedUntil time.Time
	going        bool
}

// needless tells that members go for somebody who does not wait any more.
func (y *yielding) needless() bool { return y.going && y.wanted == nil }

// share takes notice of who waits for room, and has it decided who gives way, beside the loop: it takes some calls of
// the engine.
func (s *scaler) share(ctx context.Context, e engine.Engine, now time.Time) error {
	requests, err := engine.List[domain.RoomRequest](ctx, e)
	if err != nil {
		return err
	}
	maps.DeleteFunc(s.sharing.seen, func(name string, _ time.Time) bool {
		request, waits := requests[name]
		return !waits || !request.Since.Equal(s.sharing.requests[name].Since)
	})
	s.sharing.requests = requests
	if len(requests) == 0 {
		s.yieldFor(nil, now)
		return nil
	}
	for name := range requests {
		if _, known := s.sharing.seen[name]; !known {
			s.sharing.seen[name] = now
			s.sharing.last = now
		}
	}
	if s.sharing.deciding {
		return nil
	}
	s.sharing.deciding = true
	stays := s.stays(now)
	go func() {
		made := s.decideShare(ctx, requests, stays)
		select {
		case s.sharing.shares <- made:
		case <-ctx.Done():
		}
	}()
	return nil
}

// stays are the roles that can't give way, or not down to their policies' least counts. A policy whose guards ask
// sources asks them before: others would give way in vain if it then could not.
func (s *scaler) stays(now time.Time) map[string]reconcile.Stay {
	stays := map[string]reconcile.Stay{}
	for key, f := range s.followed {
		y := &f.yielding
		switch guarded := len(f.document.Spec.Guards.Questions()) > 0; {
		case f.idle:
			stays[key] = reconcile.Stay{Count: math.MaxInt, Why: "its policy can't be followed"}
		case y.going:
		case y.refusedUntil.After(now) && y.refusedUntil.Sub(now) <= usualRefusal:
			stays[key] = reconcile.Stay{Count: math.MaxInt, Why: y.refused}
		case !y.spareAt.Before(s.sharing.last) && y.spare.Why != "":
			stays[key] = y.spare
			if now.Sub(y.spareAt) >= sharingAgain {
				f.hurry(now)
			}
		case guarded && y.spareAt.Before(s.sharing.last):
			stays[key] = reconcile.Stay{Count: math.MaxInt, Why: "its guards are asked first"}
			f.hurry(now)
		}
	}
	return stays
}

// hurry has a policy ask at once that waits for no answer.
func (f *followed) hurry(now time.Time) {
	if f.asked == nil {
		f.next = now
	}
}

// decideShare decides who gives way, and answers those who wait. What an apply that died has left of a request is
// removed.
func (s *scaler) decideShare(ctx context.Context, requests map[string]domain.RoomRequest, stays map[string]reconcile.Stay) share {
	waiting := maps.Clone(requests)
	for name, request := range requests {
		if request.Sweep {
			continue // who starts its runs takes it back
		}
		removed, err := s.reconciler.Abandoned(ctx, request)
		if err != nil {
			return share{err: err}
		}
		if removed {
			delete(waiting, name)
		}
	}
	claims, counts, err := s.reconciler.Share(ctx, waiting, stays)
	if err != nil {
		return share{err: err}
	}
	for _, claim := range claims {
		request := claim.Request
		if request.Answer == claim.Answer {
			continue
		}
		request.Answer = claim.Answer
		if _, err := engine.Put(ctx, s.reconciler.Engine, request); err != nil && !errors.Is(err, engine.ErrConflict) && !errors.Is(err, engine.ErrNotFound) {
			return share{err: err}
		}
	}
	return share{claims, counts, nil}
}

// takeShare takes notice of what was decided about those who wait.
func (s *scaler) takeShare(made share, now time.Time) {
	s.sharing.deciding, s.sharing.again = false, now.Add(sharingAgain)
	if s.told.news("sharing", made.err) && made.err != nil {
		s.log.Error("it can't be decided who gives way to those who wait for room; trying again", "error", made.err)
	}
	if made.err != nil {
		return
	}
	yields := map[string]*yielding{}
	for _, claim := range made.claims {
		if _, waits := s.sharing.requests[claim.Request.Spec.Name]; !waits {
			continue
		}
		for key, members := range claim.Gone {
			if yields[key] == nil {
				yields[key] = &yielding{wanted: &autoscale.Yield{Count: made.counts[key], For: fmt.Sprintf("%s, with priority %d", claim.Request.What(), claim.Request.Spec.Priority)}}
			}
			yields[key].wanted.Count -= len(members)
			yields[key].members = append(yields[key].members, members...)
		}
	}
	s.yieldFor(yields, now)
}

// yieldFor has policies give way. Those of which something else is wanted than before decide at once.
func (s *scaler) yieldFor(yields map[string]*yielding, now time.Time) {
	for key, f := range s.followed {
		before := f.yielding.wanted
		f.yielding.wanted, f.yielding.members = nil, nil
		if next := yields[key]; next != nil {
			f.yielding.wanted, f.yielding.members = next.wanted, next.members
		}
		after := f.yielding.wanted
		if (before == nil) != (after == nil) || before != nil && *before != *after {
			f.next = now
		}
	}
}

// noteSpare remembers to which count a role can be brought of which no change is being carried out, by the guards of a
// decision that asked at a moment.
func (f *followed) noteSpare(a *asked, decision autoscale.Decision) {
	if f.changing {
		return
	}
	count, why := f.autoscaler.Spare(a.seen, decision.Guards)
	f.yielding.spare, f.yielding.spareAt = reconcile.Stay{Count: count, Why: why}, a.at
}

// goingFor returns the members that go where a decision is one to give way, in their order.
func (f *followed) goingFor(seen autoscale.Seen, decision autoscale.Decision) []string {
	if seen.Yield == nil || decision.To >= decision.From || decision.To > max(seen.Yield.Count, f.document.Spec.Min) {
		return nil
	}
	return slices.Clone(f.yielding.members)
}

// refuse remembers that a role could not give way.
func (s *scaler) refuse(f *followed, why string, now time.Time) {
	f.yielding.refused, f.yielding.refusedUntil = why, now.Add(usualRefusal)
	s.sharing.again = now
}

// askRoom finds out for how many more members there is room, where the policy wants to know.
func (s *scaler) askRoom(ctx context.Context, a *asked, autoscaler *autoscale.Autoscaler) {
	most := autoscaler.RoomToAsk(a.seen.Count)
	switch {
	case most == 0:
		return
	case a.seen.Held != "":
		a.seen.Room = &autoscale.Room{Why: a.seen.Held}
		return
	}
	ctx, cancel := context.WithTimeout(ctx, roomPatience)
	defer cancel()
	more, short, err := s.reconciler.Room(ctx, a.document.Spec.Group, a.document.Spec.Role, most)
	a.seen.Room = &autoscale.Room{More: more, Short: short}
	if err != nil {
		a.seen.Room = &autoscale.Room{Why: err.Error()}
	}
}
