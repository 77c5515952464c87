// Package nvml reads the GPUs of this host through NVML, the library of NVIDIA's driver. It is the only package that
// knows NVML.
//
// When a GPU fails, a call to the driver may never return. So each call has a timeout, and a GPU that does not answer
// is not called again until it does.
//
// A program that uses this package is linked dynamically against the C library: a statically linked one crashes when it
// loads NVML.
package nvml

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
)

// Reader reads the GPUs of this host. All its methods may be called at the same time.
type Reader struct {
	settings Settings
	library  library
	// events is where event sets are made, waited for and freed.
	events   lane
	watching sync.Mutex
	// pause is how long Watch leaves a device or a driver alone that refuses what it asks for.
	pause time.Duration

	// use is locked for reading as long as NVML is used.
	use    sync.RWMutex
	closed bool

	mu    sync.Mutex
	slots []*slot
	xids  map[string]xids // by UUID
	// absent is when the driver was last found not to be loaded; zero where it always was.
	absent time.Time
}

// errClosed means that a Reader is used after its end.
var errClosed = errors.New("this reader of GPUs is closed: open another one")

// enter begins a use of NVML; where it succeeds, r.use.RUnlock ends it.
func (r *Reader) enter() error {
	r.use.RLock()
	if r.closed {
		r.use.RUnlock()
		return errClosed
	}
	return nil
}

// Close ends the use of NVML, after those of Read and Watch that are under way: end them by their contexts. As long as
// a device or the library does not come back from a call it fails, and the Reader stays open.
func (r *Reader) Close() error {
	r.use.Lock()
	defer r.use.Unlock()
	if r.closed {
		return nil
	}
	lanes := []*lane{&r.events}
	for _, s := range r.slots {
		lanes = append(lanes, &s.lane)
	}
	const stuck = "NVML can't be closed: %s does not come back; end this process instead"
	ctx, cancel := context.WithTimeout(context.Background(), r.settings.Answer)
	defer cancel()
	for _, l := range lanes {
		if current := l.current.Load(); current != nil && current.wait(ctx) != nil {
			return fmt.Errorf(stuck, current.function)
		}
	}
	// Behind a call that does not come back NVML is not shut down: so this Reader stays open, and can be closed later.
	var settled atomic.Bool // by what comes first: the shutdown's turn, or that it is given up
	_, err := through(context.Background(), &libraryLane, "nvmlShutdown", r.settings.Start, func() (struct{}, error) {
		if settled.Swap(true) {
			return struct{}{}, nil
		}
		return struct{}{}, r.library.shutdown()
	})
	if late, is := errors.AsType[*noAnswerError](err); is && !settled.Swap(true) {
		return fmt.Errorf(stuck, late.function)
	}
	r.closed = true
	if err != nil {
		return fmt.Errorf("closing NVML: %w; end this process instead", err)
	}
	return nil
}

// stuck reports whether a device has not come back from a call in time.
func (r *Reader) stuck() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.ContainsFunc(r.slots, func(s *slot) bool {
		current := s.lane.current.Load()
		return current != nil && time.Now().After(current.deadline)
	})
}

// Read returns the GPUs of this host in the order of their indexes. One that is lost, or does not answer, is among them
// with Trouble, as it was known before. Where one was never known, the error says so, beside those that are; where
// nothing is known, there is the error alone.
func (r *Reader) Read(ctx context.Context) ([]domain.GPU, error) {
	if err := r.enter(); err != nil {
		return nil, err
	}
	defer r.use.RUnlock()
	slots, err := r.found(ctx)
	if err != nil {
		return nil, err
	}
	looks := make([]look, len(slots))
	var all sync.WaitGroup
	for i, s := range slots {
		all.Go(func() {
			looks[i] = look{ctx: ctx, reader: r, slot: s}
			looks[i].take()
		})
	}
	all.Wait()
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	link(looks)
	gpus := make([]domain.GPU, 0, len(looks))
	var unknown []string
	var why []error
	for _, l := range looks {
		if l.gpu.UUID == "" {
			unknown = append(unknown, fmt.Sprintf("GPU %d: %s", l.slot.index, cmp.Or(l.gpu.Unknown, l.gpu.Trouble)))
			why = append(why, l.ended)
			continue
		}
		gpus = append(gpus, l.gpu)
	}
	if len(unknown) > 0 {
		return gpus, &unknownGPUsError{strings.Join(unknown, "; "), why}
	}
	return gpus, nil
}

// unknownGPUsError tells of GPUs that were never known, and wraps what ended the looks at them.
type unknownGPUsError struct {
	gpus string
	why  []error
}

func (e *unknownGPUsError) Error() string {
	return "not all GPUs of this host are known: " + e.gpus + "; see nvidia-smi and dmesg there"
}

func (e *unknownGPUsError) Unwrap() []error { return e.why }

// found returns the slots of the devices that NVML has now.
func (r *Reader) found(ctx context.Context) ([]*slot, error) {
	count, err := through(ctx, &libraryLane, "nvmlDeviceGetCount", r.settings.Answer, r.library.deviceGetCount)
	if err != nil {
		return nil, fmt.Errorf("counting the GPUs of this host: %w; see nvidia-smi and dmesg there", err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for len(r.slots) < count {
		r.slots = append(r.slots, &slot{index: len(r.slots)})
	}
	return r.slots[:count:count], nil
}
