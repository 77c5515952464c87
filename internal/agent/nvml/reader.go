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

// Reader reads the GPUs of this host. All its methods are safe for concurrent use.
type Reader struct {
	settings Settings
	library  library
	// events is for creating, waiting for and freeing event sets.
	events   callQueue
	watching sync.Mutex
	// pause is how long Watch waits before it tries a device or driver again that refused a request.
	pause time.Duration

	// use is read-locked as long as NVML is used.
	use    sync.RWMutex
	closed bool

	mu    sync.Mutex
	slots []*slot
	xids  map[string]xids // by UUID
	// absent is when the driver was last found not to be loaded; zero if it always was.
	absent time.Time
}

// errClosed means that a Reader is used after Close.
var errClosed = errors.New("this GPU reader is closed: open another one")

// enter begins a use of NVML; if it succeeds, r.use.RUnlock ends it.
func (r *Reader) enter() error {
	r.use.RLock()
	if r.closed {
		r.use.RUnlock()
		return errClosed
	}
	return nil
}

// Close ends the use of NVML, after calls of Read and Watch in progress: end them by their contexts. As long as a call
// to a device or the library does not return, it fails, and the Reader stays open.
func (r *Reader) Close() error {
	r.use.Lock()
	defer r.use.Unlock()
	if r.closed {
		return nil
	}
	queues := []*callQueue{&r.events}
	for _, s := range r.slots {
		queues = append(queues, &s.callQueue)
	}
	const stuck = "NVML can't be closed: %s does not return; end this process instead"
	ctx, cancel := context.WithTimeout(context.Background(), r.settings.Answer)
	defer cancel()
	for _, l := range queues {
		if current := l.current.Load(); current != nil && current.wait(ctx) != nil {
			return fmt.Errorf(stuck, current.function)
		}
	}
	// NVML is not shut down behind a call that does not return, so this Reader stays open, and can be closed later.
	var settled atomic.Bool // by what comes first: the shutdown's turn, or giving up
	_, err := through(context.Background(), &libraryQueue, "nvmlShutdown", r.settings.Start, func() (struct{}, error) {
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

// stuck reports whether a device has not returned from a call in time.
func (r *Reader) stuck() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.ContainsFunc(r.slots, func(s *slot) bool {
		current := s.callQueue.current.Load()
		return current != nil && time.Now().After(current.deadline)
	})
}

// Read returns the GPUs of this host sorted by index. One that is lost, or does not answer, is included as known
// before, with Trouble. If one was never known, there is an error in addition to those that are; if nothing is known,
// only the error.
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

// unknownGPUsError lists GPUs that were never known, and wraps what ended their readings.
type unknownGPUsError struct {
	gpus string
	why  []error
}

func (e *unknownGPUsError) Error() string {
	return "some GPUs of this host are unknown: " + e.gpus + "; see nvidia-smi and dmesg there"
}

func (e *unknownGPUsError) Unwrap() []error { return e.why }

// found returns the slots of NVML's current devices.
func (r *Reader) found(ctx context.Context) ([]*slot, error) {
	count, err := through(ctx, &libraryQueue, "nvmlDeviceGetCount", r.settings.Answer, r.library.deviceGetCount)
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
