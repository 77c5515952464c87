//go:build linux

// Package terminal runs a program in a pseudo-terminal, reads its screen as a person would see it, and records it as an
// animated picture.
package terminal

import (
	"bytes"
	"cmp"
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

// Terminal is a pseudo-terminal in which a program runs, and what a person would see there.
type Terminal struct {
	testing.TB
	command *exec.Cmd
	// near is the side of the user, and far the side of the program.
	near, far *os.File
	before    *unix.Termios

	mutex         sync.Mutex
	emulator      vt.MockTerm
	width, height int
	output        bytes.Buffer
}

// Start runs a command in a terminal of this size, until the test ends. TERM and a UTF-8 locale are added to its
// environment.
func Start(t testing.TB, width, height int, command *exec.Cmd) *Terminal {
	t.Helper()
	near, far, err := pty.Open()
	must(t, err)
	emulator := vt.NewMockTerm(vt.MockOptSize{X: vt.Col(width), Y: vt.Row(height)})
	term := &Terminal{TB: t, command: command, near: near, far: far, width: width, height: height, emulator: emulator}
	must(t, term.emulator.Start())
	must(t, pty.Setsize(near, &pty.Winsize{Rows: uint16(height), Cols: uint16(width)})) //nolint:gosec // it is small
	term.before = term.settings()

	command.Env = append(command.Environ(), "TERM=xterm-256color", "LC_ALL=C.UTF-8")
	command.Stdin, command.Stdout, command.Stderr = far, far, far
	command.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	must(t, command.Start())
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
			t.Logf("the screen at the end:\n%s", term.Screen())
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

func (t *Terminal) show(p []byte) {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	t.output.Write(p)
	_, _ = t.emulator.Write(p)
	_ = t.emulator.Drain()
}

// Screen returns what is on the screen.
func (t *Terminal) Screen() string {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	var b strings.Builder
	for y := range t.height {
		for x := range t.width {
			b.WriteString(cmp.Or(t.cell(x, y).C, " "))
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// Written returns everything written to the terminal.
func (t *Terminal) Written() string {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	return t.output.String()
}

// Sees waits until a row of the screen has these texts in this order.
func (t *Terminal) Sees(texts ...string) {
	t.Helper()
	acctest.Eventually(t, "a row with "+strings.Join(texts, ", "), func() bool { return t.Shows(texts...) })
}

// Shows reports whether a row of the screen has these texts in this order.
func (t *Terminal) Shows(texts ...string) bool {
	for row := range strings.Lines(t.Screen()) {
		if inOrder(row, texts) {
			return true
		}
	}
	return false
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

// Press types keys.
func (t *Terminal) Press(keys string) {
	t.Helper()
	_, err := t.near.WriteString(keys)
	must(t, err)
}

// Signal signals the program.
func (t *Terminal) Signal(s os.Signal) {
	t.Helper()
	must(t, t.command.Process.Signal(s))
}

// Resize changes the size of the terminal.
func (t *Terminal) Resize(width, height int) {
	t.Helper()
	t.mutex.Lock()
	t.width, t.height = width, height
	t.emulator.SetSize(vt.Coord{X: vt.Col(width), Y: vt.Row(height)})
	t.mutex.Unlock()
	must(t, pty.Setsize(t.near, &pty.Winsize{Rows: uint16(height), Cols: uint16(width)})) //nolint:gosec // it is small
}

// settings returns the settings of the terminal: whether it echoes, and what its keys do.
func (t *Terminal) settings() *unix.Termios {
	t.Helper()
	settings, err := unix.IoctlGetTermios(int(t.far.Fd()), unix.TCGETS)
	must(t, err)
	return settings
}

// The escape sequences that enter and leave the alternate screen, and that hide and show the cursor.
const (
	enters, leaves = "\x1b[?1049h", "\x1b[?1049l"
	hides, shows   = "\x1b[?25l", "\x1b[?25h"
)

// Ends waits until the program has ended without an error, and the terminal is restored.
func (t *Terminal) Ends() {
	t.Helper()
	if err := t.command.Wait(); err != nil {
		t.Errorf("it ended with %v", err)
	}
	for _, pair := range [][2]string{{enters, leaves}, {hides, shows}} {
		acctest.Eventually(t, "the terminal to be put right", func() bool {
			written := t.Written()
			begun, ended := strings.LastIndex(written, pair[0]), strings.LastIndex(written, pair[1])
			return begun >= 0 && ended > begun
		})
	}
	if after := t.settings(); *after != *t.before {
		t.Errorf("the terminal's settings are %+v, and were %+v", after, t.before)
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
