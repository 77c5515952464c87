//go:build linux

package meter

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/trainyard/terraform-provider-trainyard/internal/acctest"
	"github.com/trainyard/terraform-provider-trainyard/internal/autoscale"
	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
)

func TestCommandQueue(t *testing.T) {
	for name, test := range map[string]struct {
		command []string
		want    float64
		why     string
	}{
		"a number":  {[]string{"sh", "-c", "echo $(( 6 * 7 ))"}, 42, ""},
		"no number": {[]string{"echo", "many"}, 0, `echo: it printed "many"; expected a number`},
		"a failure": {
			[]string{"sh", "-c", "echo 3; echo one >&2; printf 'two\n\n' >&2; exit 4"}, 0,
			"sh: failed with exit status 4: two",
		},
		"a silent failure": {[]string{"false"}, 0, "false: failed with exit status 1"},
		"a signal":         {[]string{"sh", "-c", "kill -9 $$"}, 0, "sh: failed with signal: killed"},
		"too much":         {[]string{"cat", "/dev/zero"}, 0, "cat: its output has more than 1048576 bytes"},
		"no program":       {[]string{"no-such-program"}, 0, "no-such-program: running it failed: exec:"},
	} {
		t.Run(name, func(t *testing.T) {
			m := patient(&fake{})
			got := read(t, m, Observation{},
				Question{Source: domain.ScalingSource{Queue: &domain.QueueSource{Command: test.command}}})
			if test.why != "" {
				missed(t, got, test.why)
			} else if got.Value != test.want || got.Why != "" || !got.At.Equal(noon) {
				t.Errorf("the queue is %+v", got)
			}
		})
	}
}

// A command that times out is ended with all processes that it has started. Processes left behind by a command that
// ended with 0 keep running.
func TestCommandsEnd(t *testing.T) {
	file := filepath.Join(t.TempDir(), "pid")
	m := patient(&fake{})
	ctx, giveUp := context.WithCancel(t.Context())
	given := make(chan autoscale.Measurement)
	go func() {
		command := []string{"sh", "-c", `sleep 1000 & echo $! > "$0.new"; mv "$0.new" "$0"; wait`, file}
		given <- m.Read(ctx, noon, Observation{},
			[]Question{{Source: domain.ScalingSource{Queue: &domain.QueueSource{Command: command}}}})[0]
	}()
	acctest.Eventually(t, "the command to start", func() bool {
		_, err := os.Stat(file)
		return err == nil
	})
	giveUp()
	missed(t, <-given, "sh: context canceled")
	pid, err := strconv.Atoi(strings.TrimSpace(readFile(t, file)))
	if err != nil {
		t.Fatal(err)
	}
	acctest.Eventually(t, "what the command has started to end",
		func() bool { return syscall.Kill(pid, 0) != nil || isZombie(t, pid) })

	got := read(t, m, Observation{}, Question{Source: domain.ScalingSource{
		Queue: &domain.QueueSource{Command: []string{"sh", "-c", `sleep 1000 & echo $! > "$0"; echo 5`, file}},
	}})
	if pid, err = strconv.Atoi(strings.TrimSpace(readFile(t, file))); err != nil {
		t.Fatal(err)
	}
	if got.Value != 5 || got.Why != "" || syscall.Kill(pid, syscall.SIGKILL) != nil {
		t.Errorf("with process %d in the background: %+v", pid, got)
	}
}

// isZombie reports whether a process has ended and is not yet reaped.
func isZombie(t *testing.T, pid int) bool {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	_, after, _ := strings.Cut(string(text), ") ")
	return err != nil || strings.HasPrefix(after, "Z")
}
