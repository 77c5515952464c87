package nvml

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"
)

// Settings are how NVML is used; the zero value is right for a program that runs on the host itself.
type Settings struct {
	// Library is the file of NVIDIA's library; where it is empty, the dynamic linker looks for libnvidia-ml.so.1. A
	// process can use one only.
	Library string
	// Proc is the folder with the host's process table, by which processes get their names; /proc where it is empty.
	Proc string
	// Answer is how long a call may take, 2 s where it is 0.
	Answer time.Duration
	// Start is how long it may take to start the driver, or a GPU that nobody uses, which the driver starts for this;
	// 15 s where it is 0. Without NVIDIA's persistence daemon that takes about a second for each GPU, one after the
	// other.
	Start time.Duration
	// Quarantine is for how long a GPU is in trouble after an error that condemns it, but not until a reset, though it
	// answers; 10 minutes where it is 0.
	Quarantine time.Duration

	// turn is how long a wait for errors takes at most, a quarter of Answer where it is 0: so it is over before Close,
	// which has to wait for it, is no longer willing to.
	turn time.Duration
}

// withDefaults returns the settings with nothing left out.
func (s Settings) withDefaults() Settings {
	s.Proc = cmp.Or(s.Proc, "/proc")
	s.Answer = cmp.Or(s.Answer, 2*time.Second)
	s.Start = cmp.Or(s.Start, 15*time.Second)
	s.Quarantine = cmp.Or(s.Quarantine, 10*time.Minute)
	s.turn = cmp.Or(s.turn, s.Answer/4)
	return s
}

// Errors of Open that a caller may want to tell from others: hosts without GPUs have them, too.
var (
	// ErrNoLibrary means that NVIDIA's library is not on this host.
	ErrNoLibrary = errors.New("NVIDIA's library is not there: install the driver on this host, and in a container run it by NVIDIA's container runtime")
	// ErrNoDriver means that the library is there, and no driver runs.
	ErrNoDriver = errors.New("NVIDIA's driver is not loaded: load it (modprobe nvidia; nvidia-smi tells more), and give a container its devices")
)

// libraryLane is where the library itself is called, not a device. There is one in a process, as there is one library.
var libraryLane lane

// Open loads NVML and starts it. It fails with [ErrNoLibrary] and [ErrNoDriver] among others, each of which says what
// to do.
func Open(ctx context.Context, settings Settings) (*Reader, error) {
	settings = settings.withDefaults()
	// NVML counts its starts, and a GPU that is held open can't be reset.
	library, err := throughOr(ctx, &libraryLane, "nvmlInit", settings.Start, func() (library, error) {
		return load(settings.Library)
	}, func(started library) { _ = started.shutdown() })
	if err != nil {
		return nil, explain(err)
	}
	return &Reader{settings: settings, library: library, pause: time.Second, xids: map[string]xids{}}, nil
}

// explain adds to an error of the start what to do.
func explain(err error) error {
	if isLate(err) {
		return fmt.Errorf("NVIDIA's driver does not start: %w; see dmesg for errors of the GPUs (Xid), and restart the host", err)
	}
	code, answered := errors.AsType[result](err)
	if !answered {
		return err
	}
	switch code {
	case driverNotLoaded:
		return ErrNoDriver
	case versionsMismatch:
		return errors.New("the driver was updated, and the one that runs is of another version than its library: restart the host, or unload the driver's modules and load them again")
	case noPermission, blockedBySystem:
		return fmt.Errorf("NVIDIA's driver can't be used: %w; run this program as a user who may open /dev/nvidiactl and /dev/nvidia*, and give a container these devices", err)
	case unknownError:
		return fmt.Errorf("NVIDIA's driver does not start: %w; a container may have lost the devices /dev/nvidia*: start it again, and see dmesg otherwise", err)
	}
	return fmt.Errorf("NVIDIA's driver does not start: %w; nvidia-smi tells more", err)
}
