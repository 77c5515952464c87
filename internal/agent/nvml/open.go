package nvml

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"
)

// Settings configure the use of NVML; the zero value is right for a program that runs on the host itself.
type Settings struct {
	// Library is the file of NVIDIA's library; if empty, the dynamic linker looks for libnvidia-ml.so.1. A process can
	// use only one.
	Library string
	// Proc is the folder of the host's process table, which has the processes' names; if empty, /proc.
	Proc string
	// Answer is how long a call may take; 0 for 2 s.
	Answer time.Duration
	// Start is how long starting the driver may take, or an idle GPU, which the driver starts for this; 0 for 15 s.
	// Without NVIDIA's persistence daemon that takes about a second per GPU, one after the other.
	Start time.Duration
	// Quarantine is how long a GPU stays unusable after a fatal error that does not require a reset, though it answers;
	// 0 for 10 minutes.
	Quarantine time.Duration

	// turn bounds a single wait for errors; 0 for a quarter of Answer, so that it ends before Close, which has to wait
	// for it, gives up.
	turn time.Duration
}

// withDefaults returns the settings with defaults filled in.
func (s Settings) withDefaults() Settings {
	s.Proc = cmp.Or(s.Proc, "/proc")
	s.Answer = cmp.Or(s.Answer, 2*time.Second)
	s.Start = cmp.Or(s.Start, 15*time.Second)
	s.Quarantine = cmp.Or(s.Quarantine, 10*time.Minute)
	s.turn = cmp.Or(s.turn, s.Answer/4)
	return s
}

// Errors of Open that callers may want to distinguish, as hosts without GPUs have them too.
var (
	// ErrNoLibrary means that NVIDIA's library is not on this host.
	ErrNoLibrary = errors.New(
		"NVIDIA's library not found: install the driver on this host; in a container, use NVIDIA's container runtime",
	)
	// ErrNoDriver means that the library exists, but no driver is loaded.
	ErrNoDriver = errors.New("NVIDIA's driver is not loaded: load it (modprobe nvidia; nvidia-smi shows more), and " +
		"pass its devices to containers")
)

// libraryQueue is for calls to the library itself, rather than to a device. There is one per process, as there is one
// library.
var libraryQueue callQueue

// Open loads and starts NVML. Its errors, such as [ErrNoLibrary] and [ErrNoDriver], say what to do.
func Open(ctx context.Context, settings Settings) (*Reader, error) {
	settings = settings.withDefaults()
	// NVML counts its starts, and a GPU that is held open can't be reset.
	library, err := throughOr(ctx, &libraryQueue, "nvmlInit", settings.Start, func() (library, error) {
		return load(settings.Library)
	}, func(started library) { _ = started.shutdown() })
	if err != nil {
		return nil, explain(err)
	}
	return &Reader{settings: settings, library: library, pause: time.Second, xids: map[string]xids{}}, nil
}

// explain adds advice to an error of the start.
func explain(err error) error {
	if isLate(err) {
		return fmt.Errorf("NVIDIA's driver does not start: %w; see dmesg for GPU errors (Xid), and restart the host",
			err)
	}
	code, answered := errors.AsType[result](err)
	if !answered {
		return err
	}
	switch code {
	case driverNotLoaded:
		return ErrNoDriver
	case versionsMismatch:
		return errors.New("the driver was updated, and its library no longer matches the loaded version: restart the " +
			"host, or reload the driver's modules")
	case noPermission, blockedBySystem:
		return fmt.Errorf("NVIDIA's driver can't be used: %w; run this program as a user who may open /dev/nvidiactl "+
			"and /dev/nvidia*, and pass these devices to containers", err)
	case unknownError:
		return fmt.Errorf("NVIDIA's driver does not start: %w; a container may have lost the devices /dev/nvidia*: "+
			"restart it, and otherwise see dmesg", err)
	}
	return fmt.Errorf("NVIDIA's driver does not start: %w; nvidia-smi shows more", err)
}
