package acctest

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// OffClock shifts the clock of a host, which is otherwise this machine's. On a host where the file Says contains a
// number of seconds, all programs started from then on see a time that much later, whether through Go's package time or
// the C library.
type OffClock struct {
	Says string
	// Program is our program for hosts, built with the shifted clock.
	Program string
	// Library is loaded into all other programs that a host starts once /etc/ld.so.preload names it.
	Library string
}

//go:embed offclock/clock.c
var offClock []byte

// BuildOffClock builds an OffClock in the test's folder.
func BuildOffClock(t testing.TB) OffClock {
	t.Helper()
	folder := t.TempDir()
	clock := OffClock{Says: "/etc/clock-off", Library: filepath.Join(folder, "clock.so")}
	gcc := exec.Command("gcc", "-shared", "-fPIC", "-Wall", "-Werror", "-x", "c", "-",
		fmt.Sprintf("-DSAYS=%q", clock.Says), "-o", clock.Library)
	gcc.Stdin = bytes.NewReader(offClock)
	if output, err := gcc.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", gcc, err, output)
	}
	overlay := filepath.Join(folder, "overlay.json")
	if err := offTime(folder, overlay, clock.Says); err != nil {
		t.Fatal(err)
	}
	clock.Program = build(t, "off-clock", agent, static, "-ldflags", stripped, "-overlay", overlay)
	return clock
}

// offTime writes an overlay for go build that shifts the clock of Go's package time.
func offTime(folder, overlay, says string) error {
	root, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		return err
	}
	original := filepath.Join(strings.TrimSpace(string(root)), "src", "time", "time.go")
	source, err := os.ReadFile(original)
	if err != nil {
		return err
	}
	const reads = "sec, nsec, mono := runtimeNow()\n"
	if found := bytes.Count(source, []byte(reads)); found != 1 {
		return fmt.Errorf("%s has %q %d times, so that its clock can't be put off there", original, reads, found)
	}
	changed := strings.Replace(string(source), reads, reads+"\tsec += clockOff\n", 1) + fmt.Sprintf(`
var clockOff = func() int64 {
	text, _ := readFile(%q)
	seconds, _ := atoi(text)
	return int64(seconds)
}()
`, says)
	file := filepath.Join(folder, "time.go")
	if err := os.WriteFile(file, []byte(changed), 0o600); err != nil {
		return err
	}
	replace, err := json.Marshal(map[string]map[string]string{"Replace": {original: file}})
	if err != nil {
		return err
	}
	return os.WriteFile(overlay, replace, 0o600)
}
