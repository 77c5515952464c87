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
	// sharingAgain is how often it is decided without an event which roles yield, while somebody waits for room.
	sharingAgain = 2 * time.Second
	// roomPatience bounds how long it may take to find out for how many more members there is room.
	roomPatience = 5 * time.Second
	// usualRefusal is how long a role that could not yield is left alone, so that others may.
	usualRefusal = 15 * time.Second
)

// sharing is what a scaler knows about requests for room.
type sharing struct {
	// requests are the requests, and seen is when each was first read; empty if nobody waits.
	requests map[string]domain.RoomRequest
	seen     map[string]time.Time
	// last is when the newest of them was first read.
	last time.Time
	// again is when to decide again which roles yield, deciding is set while that is in progress, and
	// shares delivers the results.
	again    time.Time
	deciding bool
	shares   chan share
}

// share is a decision about the requests for room.
type share struct {
	claims []reconcile.Claim
	counts map[string]int // by policy key
	err    error
}

// yielding is what a policy has to do for requests for room.
type yielding struct {
	// wanted is what is asked of it, and members are those to remove; nil if nothing is.
	wanted  *autoscale.Yield
	members []string
	// spare is the count to which its guards let the role shrink, as of spareAt.
	spare   reconcile.Stay
	spareAt time.Time
	// refused is why it could not yield, until refusedUntil. going is set while members are being removed to make room.
	refused      string
	refusedUntil time.Time
	going        bool
}

// needless reports whether members are being removed for a request that is gone.
func (y *yielding) needless() bool { return y.going && y.wanted == nil }

// share reads the requests for room, and has it decided in a goroutine which roles yield, as that
// takes several engine calls.
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

// stays returns the roles that can't yield, or not down to their min. A policy with guards that ask sources has to ask
// them first: others would have yielded for nothing if it then could not.
func (s *scaler) stays(now time.Time) map[string]reconcile.Stay {
	stays := map[string]reconcile.Stay{}
	for key, f := range s.followed {
		y := &f.yielding
		switch guarded := len(f.document.Spec.Guards.Questions()) > 0; {
		case f.idle:
			stays[key] = reconcile.Stay{Count: math.MaxInt, Why: "its policy is invalid"}
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

// hurry makes a policy ask at once, unless it waits for answers.
func (f *followed) hurry(now time.Time) {
	if f.asked == nil {
		f.next = now
	}
}

// decideShare decides which roles yield, and answers the requests. It deletes requests of applies that died.
func (s *scaler) decideShare(
	ctx context.Context, requests map[string]domain.RoomRequest, stays map[string]reconcile.Stay,
) share {
	waiting := maps.Clone(requests)
	for name, request := range requests {
		if request.Sweep {
			continue // deleted by whoever starts its runs
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
		if _, err := engine.Put(ctx, s.reconciler.Engine, request); err != nil && !errors.Is(err, engine.ErrConflict) &&
			!errors.Is(err, engine.ErrNotFound) {
			return share{err: err}
		}
	}
	return share{claims, counts, nil}
}

// takeShare handles a decision about the requests for room.
func (s *scaler) takeShare(made share, now time.Time) {
	s.sharing.deciding, s.sharing.again = false, now.Add(sharingAgain)
	if s.logged.news("sharing", made.err) && made.err != nil {
		s.log.Error("deciding which roles give up room failed; trying again", "error", made.err)
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
				yields[key] = &yielding{wanted: &autoscale.Yield{
					Count: made.counts[key],
					For:   fmt.Sprintf("%s, with priority %d", claim.Request.What(), claim.Request.Spec.Priority),
				}}
			}
			yields[key].wanted.Count -= len(members)
			yields[key].members = append(yields[key].members, members...)
		}
	}
	s.yieldFor(yields, now)
}

// yieldFor sets what each policy has to yield. A policy for which that has changed decides at once.
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

// noteSpare records the count to which the guards of a decision let a role shrink, unless a change is in progress.
func (f *followed) noteSpare(a *asked, decision autoscale.Decision) {
	if f.changing {
		return
	}
	count, why := f.autoscaler.Spare(a.seen, decision.Guards)
	f.yielding.spare, f.yielding.spareAt = reconcile.Stay{Count: count, Why: why}, a.at
}

// goingFor returns the members to remove, in order, if a decision is one to yield.
func (f *followed) goingFor(seen autoscale.Seen, decision autoscale.Decision) []string {
	if seen.Yield == nil || decision.To >= decision.From || decision.To > max(seen.Yield.Count, f.document.Spec.Min) {
		return nil
	}
	return slices.Clone(f.yielding.members)
}

// refuse records that a role could not yield.
func (s *scaler) refuse(f *followed, why string, now time.Time) {
	f.yielding.refused, f.yielding.refusedUntil = why, now.Add(usualRefusal)
	s.sharing.again = now
}

// askRoom finds out for how many more members there is room, if the policy needs to know.
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
