//go:build linux

package testbed

import (
	"context"
	"errors"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/trainyard/terraform-provider-trainyard/internal/acctest"
)

func TestRun(t *testing.T) {
	t.Parallel()
	bed := NewHosts(t, HostOptions{Hosts: 1})
	host := bed.Hosts[0]
	for command, want := range map[string]string{
		"echo one; echo two; echo said >&2": "one\ntwo",
		"pwd; printenv HOME PATH":           "/\n/root\n" + searchPath,
		"sleep infinity & echo $0 $#":       "sh 1",
	} {
		if output := on(t, host, command); output != want {
			t.Errorf("%s writes %q, want %q", command, output, want)
		}
	}
	const fails = "echo before; echo why >&2; exit 7"
	output, err := host.Run(limited(t), fails)
	if want := "host1: " + fails + ": exit status 7: why"; output != "before" || err == nil || err.Error() != want {
		t.Errorf("a command that fails writes %q, %v; want error %s", output, err, want)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	wait := func(command string) {
		_, err := host.Run(ctx, command)
		ended <- err
	}
	started := func(name string) {
		acctest.Eventually(t, name, func() bool {
			_, err := os.Stat(host.Root() + "/run/" + name)
			return err == nil
		})
	}
	go wait("touch /run/first; sleep infinity")
	started("first")
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("a command that is called off: %v", err)
	}
	ctx = limited(t)
	go wait("touch /run/second; sleep infinity")
	started("second")
	if err := host.Kill(); err != nil {
		t.Error(err)
	}
	if err := <-ended; err == nil || !strings.Contains(err.Error(), "it was killed") {
		t.Errorf("a command on a host that loses power: %v", err)
	}
}

// Work on a host takes as long as on a machine with this few processors, however many this machine has.
func TestHostProcessors(t *testing.T) {
	host := NewHosts(t, HostOptions{Hosts: 1, CPUs: 0.2}).Hosts[0]
	const spins = `systemd-run --quiet --wait --pipe python3 -c "
import time
wall, spent = time.monotonic(), time.process_time()
while time.process_time() - spent < 0.3: pass
print(time.monotonic() - wall)"`
	took, err := strconv.ParseFloat(on(t, host, spins), 64)
	if err != nil {
		t.Fatal(err)
	}
	if least := (0.3 - 0.2*0.1) / 0.2 / 2; took < least { // the first quota comes on top; half the rest is enough
		t.Errorf("0.3 s of a processor take %.2f s where there are 0.2 processors, want more than %.2f s", took, least)
	}
}
