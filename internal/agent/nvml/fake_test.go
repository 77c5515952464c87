//go:build linux

package nvml

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/trainyard/terraform-provider-trainyard/internal/acctest/patience"
	"github.com/trainyard/terraform-provider-trainyard/internal/agent/nvml/fakenvml"
	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
)

func TestMain(m *testing.M) {
	code := m.Run()
	if err := fakenvml.Remove(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = max(code, 1)
	}
	os.Exit(code)
}

// patient are settings with which no call that returns at all is abandoned.
func patient(t testing.TB, without ...string) Settings {
	return Settings{
		Library: filepath.Join(fakenvml.Build(t, without...), fakenvml.Library),
		Answer:  time.Minute, Start: time.Minute, turn: 50 * time.Millisecond,
	}
}

// hasty are settings with which calls are abandoned soon, sometimes even one that would have returned.
func hasty(t testing.TB) Settings {
	settings := patient(t)
	settings.Answer = 200 * time.Millisecond
	return settings
}

// openFake opens the fake library, with devices.
func openFake(t testing.TB, settings Settings, devices ...fakenvml.Device) (*Reader, *fakenvml.Control) {
	t.Helper()
	control := fakenvml.New(t)
	control.Set(devices...)
	t.Setenv(fakenvml.Variable, control.Path())
	reader, err := Open(t.Context(), settings)
	if err != nil {
		t.Fatal(err)
	}
	reader.pause = 10 * time.Millisecond
	t.Cleanup(func() { closeAtLast(t, reader) })
	t.Cleanup(func() { heal(control) })
	return reader, control
}

// heal makes every call return. It runs before the library is closed: one that a failed test left open would fail the
// following tests, which would find it started.
func heal(control *fakenvml.Control) {
	control.Set()
	control.Break(nil)
}

// closeAtLast closes a reader as soon as all calls have returned, however late that is.
func closeAtLast(t testing.TB, r *Reader) {
	t.Helper()
	var err error
	eventually(t, "all calls to come back", func() bool {
		err = r.Close()
		return r.closed
	})
	if err != nil {
		t.Error(err)
	}
}

// refusesToClose checks that a reader can't be closed while a function hangs: others may be late just then.
func refusesToClose(t testing.TB, r *Reader, function string) {
	t.Helper()
	eventually(t, "closing to fail because of "+function, func() bool {
		err := r.Close()
		if err == nil {
			t.Fatalf("closed while %s hangs", function)
		}
		return strings.Contains(err.Error(), function+" does not return")
	})
}

func read(t testing.TB, r *Reader) []domain.GPU {
	t.Helper()
	gpus, err := r.Read(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return gpus
}

// eventually waits for a condition without an event.
func eventually(t testing.TB, what string, holds func() bool) {
	t.Helper()
	look := time.NewTicker(5 * time.Millisecond)
	defer look.Stop()
	for deadline := time.After(patience.Limit); !holds(); {
		select {
		case <-look.C:
		case <-deadline:
			t.Fatalf("waited for %s in vain", what)
		}
	}
}

// aloneVariable marks the process that alone starts.
const aloneVariable = "NVML_TEST_ALONE"

// alone runs a test in its own process, which can load another library than this one. It returns true in that process,
// for the test to continue.
func alone(t *testing.T) bool {
	t.Helper()
	if os.Getenv(aloneVariable) != "" {
		return true
	}
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	command := exec.Command(program, "-test.run=^"+t.Name()+"$", "-test.v")
	command.Env = append(os.Environ(), aloneVariable+"=1")
	output, err := command.CombinedOutput()
	switch {
	case err != nil:
		t.Errorf("%v\n%s", err, output)
	case bytes.Contains(output, []byte("\n--- SKIP")): // all of the test, not a part
		t.Skipf("%s", output)
	default:
		t.Logf("%s", output)
	}
	return false
}
