//go:build linux

package top_test

import (
	"bytes"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/creack/pty"
	"github.com/gdamore/tcell/v3/vt"
	"golang.org/x/sys/unix"

	"github.com/trainyard/terraform-provider-trainyard/internal/acctest"
)

// terminal is a pseudo-terminal in which a program runs, and what a person would see there.
type terminal struct {
	*testing.T
	command *exec.Cmd
	// near is the side of the user, and far the side of the program.
	near, far *os.File
	before    *unix.Termios

	mutex         sync.Mutex
	emulator      vt.MockTerm
	width, height int
	output        bytes.Buffer
}

// startIn runs top in a terminal of this size.
func startIn(t *testing.T, width, height int, args ...string) *terminal {
	t.Helper()
	near, far, err := pty.Open()
	must(t, err)
	term := &terminal{T: t, near: near, far: far, width: width, height: height, emulator: vt.NewMockTerm(vt.MockOptSize{X: vt.Col(width), Y: vt.Row(height)})}
	must(t, term.emulator.Start())
	must(t, pty.Setsize(near, &pty.Winsize{Rows: uint16(height), Cols: uint16(width)})) //nolint:gosec // it is small
	term.before = term.settings()

	command := exec.Command(acctest.Build(t, acctest.Provider), append([]string{"top"}, args...)...)
	command.Env = append(os.Environ(), "TERM=xterm-256color", "LC_ALL=C.UTF-8", "DOCKER_HOST=")
	command.Stdin, command.Stdout, command.Stderr = far, far, far
	command.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	must(t, command.Start())
	term.command = command
	shown := make(chan struct{})
	go func() {
		defer close(shown)
		_, _ = io.Copy(writer(term.show), near) // until it is closed
	}()
	t.Cleanup(func() {
		_ = command.Process.Kill() // it has usually ended
		_ = far.Close()
		_ = near.Close()
		<-shown
		must(t, term.emulator.Stop())
		if t.Failed() {
			t.Logf("the screen at the end:\n%s", term.screen())
		}
	})
	return term
}

// writer is a function as an io.Writer.
type writer func(p []byte)

func (w writer) Write(p []byte) (int, error) {
	w(p)
	return len(p), nil
}

func (t *terminal) show(p []byte) {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	t.output.Write(p)
	_, _ = t.emulator.Write(p)
	_ = t.emulator.Drain()
}

// screen returns what is on the screen.
func (t *terminal) screen() string {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	var b strings.Builder
	for y := range t.height {
		for x := range t.width {
			if c := t.emulator.GetCell(vt.Coord{X: vt.Col(x), Y: vt.Row(y)}).C; c != "" {
				b.WriteString(c)
			} else {
				b.WriteByte(' ')
			}
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// written returns everything written to the terminal.
func (t *terminal) written() string {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	return t.output.String()
}

// sees waits until a row of the screen has these texts in this order.
func (t *terminal) sees(texts ...string) {
	t.Helper()
	acctest.Eventually(t, "a row with "+strings.Join(texts, ", "), func() bool {
		for row := range strings.Lines(t.screen()) {
			if inOrder(row, texts) {
				return true
			}
		}
		return false
	})
}

func inOrder(row string, texts []string) bool {
	for _, text := range texts {
		var found bool
		if _, row, found = strings.Cut(row, text); !found {
			return false
		}
	}
	return true
}

func (t *terminal) press(keys string) {
	t.Helper()
	_, err := t.near.WriteString(keys)
	must(t.T, err)
}

func (t *terminal) resize(width, height int) {
	t.Helper()
	t.mutex.Lock()
	t.width, t.height = width, height
	t.emulator.SetSize(vt.Coord{X: vt.Col(width), Y: vt.Row(height)})
	t.mutex.Unlock()
	must(t.T, pty.Setsize(t.near, &pty.Winsize{Rows: uint16(height), Cols: uint16(width)})) //nolint:gosec // it is small
}

// settings returns the settings of the terminal: whether it echoes, and what its keys do.
func (t *terminal) settings() *unix.Termios {
	t.Helper()
	settings, err := unix.IoctlGetTermios(int(t.far.Fd()), unix.TCGETS)
	must(t.T, err)
	return settings
}

// The escape sequences that enter and leave the alternate screen, and that hide and show the cursor.
const (
	enters, leaves = "\x1b[?1049h", "\x1b[?1049l"
	hides, shows   = "\x1b[?25l", "\x1b[?25h"
)

// ends waits until the program has ended without an error, and the terminal is restored.
func (t *terminal) ends() {
	t.Helper()
	if err := t.command.Wait(); err != nil {
		t.Errorf("it ended with %v", err)
	}
	for _, pair := range [][2]string{{enters, leaves}, {hides, shows}} {
		acctest.Eventually(t, "the terminal to be put right", func() bool {
			written := t.written()
			begun, ended := strings.LastIndex(written, pair[0]), strings.LastIndex(written, pair[1])
			return begun >= 0 && ended > begun
		})
	}
	if after := t.settings(); *after != *t.before {
		t.Errorf("the terminal's settings are %+v, and were %+v", after, t.before)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
