//go:build linux

package nvml

import (
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/trainyard/terraform-provider-trainyard/internal/agent/nvml/fakenvml"
)

// fails expects that opening NVML fails with a text.
func fails(t *testing.T, settings Settings, text string) error {
	t.Helper()
	_, err := Open(t.Context(), settings)
	if err == nil || !strings.Contains(err.Error(), text) {
		t.Errorf("%v, want %q", err, text)
	}
	return err
}

func TestOpenWithoutDriver(t *testing.T) {
	for name, test := range map[string]struct {
		code int
		text string
	}{
		"no driver": {fakenvml.DriverNotLoaded, "modprobe nvidia"},
		"driver updated": {
			fakenvml.VersionsMismatch,
			"the driver was updated, and its library no longer matches the loaded version: restart the host",
		},
		"no permission": {
			fakenvml.NoPermission, "no permission; run this program as a user who may open /dev/nvidiactl",
		},
		"devices withdrawn": {fakenvml.Unknown, "a container may have lost the devices"},
		"something else":    {20, "out of memory; nvidia-smi shows more"},
		"something new":     {77, "NVML error 77"},
	} {
		t.Run(name, func(t *testing.T) {
			control := fakenvml.New(t)
			control.Break(fakenvml.Faults{"nvmlInit": test.code})
			t.Setenv(fakenvml.Variable, control.Path())
			if err := fails(t, patient(t),
				test.text); errors.Is(err, ErrNoDriver) != (test.code == fakenvml.DriverNotLoaded) {
				t.Errorf("%v is ErrNoDriver, or is not", err)
			}
			// It is not a permanent error.
			control.Break(nil)
			r, err := Open(t.Context(), patient(t))
			if err != nil {
				t.Fatal(err)
			}
			if err := r.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestOpenGivenUp: a start that is abandoned at any time doesn't leave the library started: nobody would shut it down,
// and a GPU that is held open can't be reset.
func TestOpenGivenUp(t *testing.T) {
	for name, open := range map[string]func(i int) (*Reader, error){
		"by who has gone": func(i int) (*Reader, error) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			go func() {
				for range i {
					runtime.Gosched()
				}
				cancel()
			}()
			return Open(ctx, patient(t))
		},
		"because it is late": func(int) (*Reader, error) {
			settings := patient(t)
			settings.Start = rand.N(60 * time.Microsecond) // about as long as it takes
			return Open(t.Context(), settings)
		},
	} {
		t.Run(name, func(t *testing.T) {
			r, _ := openFake(t, patient(t), fakenvml.V100s("host", 1)...)
			library := r.library
			if err := r.Close(); err != nil {
				t.Fatal(err)
			}
			for i := range 2000 {
				r, err := open(i)
				switch {
				case err == nil:
					r.settings.Start = time.Minute
					closeAtLast(t, r)
				case !errors.Is(err, context.Canceled) && !strings.Contains(err.Error(), "did not answer"):
					t.Fatal(err)
				}
				if current := libraryQueue.current.Load(); current != nil {
					<-current.done // otherwise the next start would be abandoned behind it
				}
			}
			isShutDown(t, library)
		})
	}
}

// isShutDown expects that the library was shut down as often as it was started.
func isShutDown(t *testing.T, library library) {
	t.Helper()
	_, err := through(t.Context(), &libraryQueue, "nvmlDeviceGetCount", time.Minute, library.deviceGetCount)
	if want := result(1); !errors.Is(err, want) {
		t.Errorf("after its last end, the library says %v, want %v", err, want)
	}
}

// TestCloseBehindLibrary: a reader whose library doesn't return stays open, to be closed when it does, as nobody else
// would shut it down.
func TestCloseBehindLibrary(t *testing.T) {
	devices := fakenvml.V100s("host", 1)
	r, control := openFake(t, hasty(t), devices...)
	control.Break(fakenvml.Faults{"nvmlDeviceGetCount": fakenvml.Hang})
	if _, err := r.Read(t.Context()); !isLate(err) {
		t.Errorf("reading: %v", err)
	}
	refusesToClose(t, r, "nvmlDeviceGetCount")
	control.Break(nil)
	eventually(t, "the reader to go on", func() bool {
		gpus, err := r.Read(t.Context())
		return err == nil && cmp.Equal(idle(devices), gpus)
	})
	closeAtLast(t, r)
	isShutDown(t, r.library)
}

func TestOpenWithoutLibrary(t *testing.T) {
	if !alone(t) {
		return
	}
	text := filepath.Join(t.TempDir(), "text.so")
	if err := os.WriteFile(text, []byte("not a library"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := fails(t, Settings{Library: "/nowhere/libnvidia-ml.so.1"},
		"/nowhere/libnvidia-ml.so.1"); !errors.Is(err, ErrNoLibrary) {
		t.Errorf("%v is not ErrNoLibrary", err)
	}
	if err := fails(t, Settings{Library: text}, "loading NVIDIA's library: "+text); errors.Is(err, ErrNoLibrary) {
		t.Errorf("%v is ErrNoLibrary", err)
	}
	for _, function := range []string{
		"nvmlInit_v2", "nvmlShutdown", "nvmlDeviceGetCount_v2", "nvmlDeviceGetHandleByIndex_v2", "nvmlDeviceGetUUID",
	} {
		_ = fails(t, patient(t, function), " lacks "+strings.TrimSuffix(function, "_v2")+": it isn't NVIDIA's")
	}
	// None of them was bound to this process.
	devices := fakenvml.V100s("host", 1)
	r, _ := openFake(t, patient(t), devices...)
	if diff := cmp.Diff(idle(devices), read(t, r)); diff != "" {
		t.Errorf("with a good library (-want +got):\n%s", diff)
	}
}

func TestOpenAnotherLibrary(t *testing.T) {
	openFake(t, patient(t))
	_, err := Open(t.Context(), patient(t, "nvmlDeviceGetPowerUsage"))
	if err == nil || !strings.Contains(err.Error(), "use another process for that") {
		t.Errorf("a second library: %v", err)
	}
}

func TestClosed(t *testing.T) {
	r, _ := openFake(t, patient(t))
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Read(t.Context()); !errors.Is(err, errClosed) {
		t.Errorf("reading: %v", err)
	}
	if err := r.Watch(t.Context(), nil); !errors.Is(err, errClosed) {
		t.Errorf("watching: %v", err)
	}
}

// TestSource uses the library that the dynamic linker finds, with the given process table.
func TestSource(t *testing.T) {
	if os.Getenv(aloneVariable) == "" {
		t.Setenv("LD_LIBRARY_PATH", fakenvml.Build(t))
	}
	if !alone(t) {
		return
	}
	devices := fakenvml.V100s("host", 1)
	devices[0].Processes = []fakenvml.Process{{PID: 7, MiB: 1}}
	control := fakenvml.New(t)
	control.Set(devices...)
	t.Setenv(fakenvml.Variable, control.Path())
	proc := t.TempDir()
	if err := os.Mkdir(filepath.Join(proc, "7"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(proc, "7", "comm"), []byte("host's\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	gpus, err := Source(Settings{Proc: proc})(t.Context())
	if err != nil || len(gpus) != 1 || gpus[0].Processes[0].Command != "host's" {
		t.Errorf("%+v, %v", gpus, err)
	}
}
