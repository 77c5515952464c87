package nvml

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
)

// xids are the XID errors of a GPU since it is watched.
type xids struct {
	last int
	at   time.Time
	// condemned is the error that makes the GPU unusable; nil if there was none, or the GPU is usable again.
	condemned *domain.Condemnation
	// gone is when the GPU was last found to be gone.
	gone time.Time
}

// hears adds an error. One that requires a reset is not replaced by one that does not.
func (x xids) hears(xid int, at time.Time) xids {
	x.last, x.at = xid, at
	if domain.FatalXID(xid) && (x.condemned == nil || domain.ResetXID(xid) || !domain.ResetXID(x.condemned.XID)) {
		x.condemned = &domain.Condemnation{XID: xid, At: at.UTC()}
	}
	return x
}

// judge fills in the errors of a GPU after a reading, and returns the one that makes it unusable, or 0. The GPU is
// usable again when it answers after a reset or, if none is required, after some time without such an error.
func (r *Reader) judge(gpu *domain.GPU, ended error, now time.Time) (fatal int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	seen := r.xids[gpu.UUID]
	if isGone(ended) {
		seen.gone = now.UTC()
	}
	gpu.GoneAt = seen.gone
	if r.absent.After(seen.gone) {
		gpu.GoneAt = r.absent.UTC()
	}
	if !seen.at.IsZero() {
		gpu.XID, gpu.XIDAt = &seen.last, &seen.at
	}
	if seen.condemned != nil {
		next, holds := seen.condemned.After(*gpu, "")
		fresh := domain.ResetXID(next.XID) || now.Sub(next.At) < r.settings.Quarantine
		seen.condemned = &next
		if ended == nil && (!holds || !fresh) {
			seen.condemned = nil
		}
	}
	r.xids[gpu.UUID] = seen
	if seen.condemned == nil {
		return 0
	}
	if domain.ResetXID(seen.condemned.XID) {
		gpu.Condemned = seen.condemned
	}
	return seen.condemned.XID
}

// Watch calls report for each XID error that the driver reports from now on, with the UUID of its GPU, until ctx is
// done; then it returns nil. GPUs without event support are skipped, and those that do not answer are tried again.
// There can be only one watch at a time.
//
// From then on, [Reader.Read] returns the last error of each GPU, and one that makes the GPU unusable as its Trouble.
// That ends when the GPU comes back after it was gone, when the driver no longer requests a recovery, or, if the error
// does not require a reset, after Settings.Quarantine without another such error. A GPU can only be reset if nobody
// holds it open: this Reader has to be closed for that.
func (r *Reader) Watch(ctx context.Context, report func(uuid string, xid int, at time.Time)) error {
	if err := r.enter(); err != nil {
		return err
	}
	defer r.use.RUnlock()
	if !r.watching.TryLock() {
		return errors.New("the GPUs are already being watched: end that watch first")
	}
	defer r.watching.Unlock()
	for _, function := range []string{
		"nvmlEventSetCreate", "nvmlDeviceRegisterEvents", "nvmlEventSetWait", "nvmlEventSetFree",
	} {
		if !r.library.has(function) {
			return fmt.Errorf("watching for GPU errors: the driver's library lacks %s; update the driver", function)
		}
	}
	ears := ears{reader: r, deaf: map[int]bool{}, breaking: map[int]time.Time{}, report: report}
	for ctx.Err() == nil {
		next := time.Now().Add(r.pause)
		if err := ears.listen(ctx); isAnswer(err) {
			return fmt.Errorf("watching for GPU errors: %w", err)
		}
		rest(ctx, time.Until(next))
	}
	return nil
}

// rest waits for a time, or until ctx is done.
func rest(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// ears listen for the XID errors of all devices.
type ears struct {
	reader *Reader
	report func(uuid string, xid int, at time.Time)
	// deaf are the devices, by index, without event support, and breaking those that broke the event set that they were
	// added to, with the time of the next attempt.
	deaf     map[int]bool
	breaking map[int]time.Time
}

// breakingPauses is how many pauses a device that broke a set is skipped for: errors that others report meanwhile may
// be lost with the set.
const breakingPauses = 100

// hearing is an event set, with the devices registered in it, by index.
type hearing struct {
	set        eventSet
	registered map[int]bool
	// held means that a call that uses the set has not returned.
	held bool
}

// listen creates an event set and reports what arrives in it, until the set is broken or ctx is done.
func (e *ears) listen(ctx context.Context) error {
	r := e.reader
	set, err := through(ctx, &r.events, "nvmlEventSetCreate", r.settings.Answer, r.library.eventSetCreate)
	if err != nil {
		return err
	}
	h := hearing{set: set, registered: map[int]bool{}}
	defer e.free(ctx, &h)
	var next time.Time // when unregistered devices are tried again
	for ctx.Err() == nil {
		if now := time.Now(); !now.Before(next) {
			next = now.Add(r.pause)
			if broken, err := e.register(ctx, &h); broken || isAnswer(err) {
				return err
			}
		}
		if len(h.registered) == 0 {
			rest(ctx, time.Until(next))
			continue
		}
		// The wait times out by itself. An error that arrives late, or after ctx is done, is reported too: the driver
		// reports it only once.
		_, err := through(ctx, &r.events, "nvmlEventSetWait", math.MaxInt64, func() (event, error) {
			heard, err := set.wait(r.settings.turn)
			if err == nil {
				e.hear(heard)
			}
			return heard, err
		})
		if err != nil && !errors.Is(err, timedOut) {
			return nil // the set is broken, as happens when a GPU is lost
		}
	}
	return nil
}

// register registers the events of all devices that support them. It reports whether that broke the set; its error is
// one of the library.
func (e *ears) register(ctx context.Context, h *hearing) (broken bool, err error) {
	slots, err := e.reader.found(ctx)
	if err != nil {
		return false, err
	}
	for _, s := range slots {
		if h.registered[s.index] || e.deaf[s.index] || time.Now().Before(e.breaking[s.index]) {
			continue
		}
		l := look{ctx: ctx, reader: e.reader, slot: s}
		handle := l.attach()
		if handle == nil {
			continue
		}
		_, err := try(&l, "nvmlDeviceRegisterEvents",
			func() (struct{}, error) { return struct{}{}, handle.registerEvents(h.set) })
		switch {
		case err == nil:
			h.registered[s.index] = true
		case errors.Is(err, notSupported):
			e.deaf[s.index] = true
		case errors.Is(err, unknownError):
			e.breaking[s.index] = time.Now().Add(breakingPauses * e.reader.pause)
			return true, nil // nvml.h says that the set is in an undefined state then
		case !isAnswer(err):
			h.held = true
		}
	}
	return false, nil
}

// hear records an error and reports it.
func (e *ears) hear(heard event) {
	r, at := e.reader, time.Now()
	r.mu.Lock()
	uuid := ""
	for _, s := range r.slots {
		if known := s.recall(); known.handle == heard.device {
			uuid = known.UUID
		}
	}
	r.xids[uuid] = r.xids[uuid].hears(heard.xid, at)
	r.mu.Unlock()
	e.report(uuid, heard.xid, at)
}

// free frees a set, unless a call still uses it.
func (e *ears) free(ctx context.Context, h *hearing) {
	if h.held {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), e.reader.settings.Answer)
	defer cancel()
	_, _ = through(ctx, &e.reader.events, "nvmlEventSetFree", e.reader.settings.Answer, func() (struct{}, error) {
		return struct{}{}, h.set.free()
	})
}
