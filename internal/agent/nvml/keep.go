package nvml

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
)

// reopen is the pause before a driver that could not be used is tried again.
const reopen = 5 * time.Second

// Keep returns a function that reads the GPUs of this host, for a program that does so repeatedly until ctx is done:
// the driver stays open, its errors are watched, and what can't be opened is tried again from time to time. The
// function is not safe for concurrent use.
func Keep(ctx context.Context, settings Settings, log *slog.Logger) func(ctx context.Context) ([]domain.GPU, error) {
	k := &keeper{life: ctx, settings: settings, log: log}
	return k.read
}

type keeper struct {
	life     context.Context //nolint:containedctx // of the program, not of a call
	settings Settings
	log      *slog.Logger

	reader *Reader
	watch  context.CancelFunc
	ended  sync.WaitGroup
	// xids outlive a reader: reopening the driver does not make a GPU trustworthy again.
	xids map[string]xids
	// absent is when the driver was last found not to be loaded: what it reported before no longer applies.
	absent time.Time
	// failed is when opening last failed, and why is the reason.
	failed time.Time
	why    error
}

func (k *keeper) read(ctx context.Context) ([]domain.GPU, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if err := k.open(ctx); err != nil {
		return nil, err
	}
	stuck := k.reader.stuck() // it may answer during the read, which is too late for that, and no reason to reopen it
	gpus, err := k.reader.Read(ctx)
	switch {
	case err == nil, len(gpus) > 0, ctx.Err() != nil:
	case isLate(err), stuck, k.reader.stuck(): // it can't be closed, and may answer later
	default:
		k.close(err)
	}
	return gpus, err
}

// open opens the driver unless it is open, and watches its errors.
func (k *keeper) open(ctx context.Context) error {
	if k.reader != nil {
		return nil
	}
	if k.why != nil && time.Since(k.failed) < reopen {
		return k.why
	}
	reader, err := Open(ctx, k.settings)
	if err != nil {
		if errors.Is(err, ErrNoDriver) {
			k.absent = time.Now()
		}
		if ctx.Err() == nil {
			k.failed, k.why = time.Now(), err
		}
		return err
	}
	if k.xids == nil {
		k.xids = map[string]xids{}
	}
	reader.xids, reader.absent = k.xids, k.absent
	k.reader, k.why = reader, nil
	k.listen()
	return nil
}

// listen watches the errors of GPUs, and continues after an error of the driver itself.
func (k *keeper) listen() {
	reader := k.reader
	watching, stop := context.WithCancel(k.life)
	k.watch = stop
	k.ended.Go(func() {
		complaint := ""
		for {
			err := reader.Watch(watching, func(uuid string, xid int, _ time.Time) {
				k.log.Warn("the driver reported a GPU error", "gpu", uuid, "xid", xid, "means", domain.XIDText(xid))
			})
			if err == nil {
				return
			}
			if message := err.Error(); message != complaint {
				k.log.Error("can't watch for GPU errors", "error", err)
				complaint = message
			}
			if !isAnswer(err) {
				return // the library does not support it
			}
			rest(watching, reader.pause)
		}
	})
}

// close closes the driver, to be reopened some time after it failed. While a call is stuck it stays open: each further
// reader would lose another thread to the driver.
func (k *keeper) close(why error) {
	k.watch()
	k.ended.Wait()
	if err := k.reader.Close(); err != nil {
		k.log.Error("can't close NVML", "error", err)
	}
	if !k.reader.closed {
		k.listen()
		return
	}
	k.reader = nil
	k.failed, k.why = time.Now(), why
}
