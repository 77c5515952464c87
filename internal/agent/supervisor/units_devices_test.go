//go:build linux

package supervisor_test

import (
	"strings"
	"testing"
)

// TestUnitDevices: a member can access its own GPUs and no others, and all devices other than GPUs; also after systemd
// has reloaded its units. An accessible device without a driver gives "no such device", an inaccessible one "not
// permitted".
func TestUnitDevices(t *testing.T) {
	l := newHostLab(t, "devices")
	if l.out(
		"ls -d /sys/fs/cgroup/devices 2>/dev/null || test -e /sys/fs/cgroup/cgroup.controllers && echo there",
	) == "" {
		t.Skip("there are no control groups of devices")
	}
	l.sh(`mkdir -p /dev/fakes && cd /dev/fakes && for minor in 0 1 255; do [ -e $minor ] || mknod $minor c 195 $minor; done
mount -t tmpfs none /proc/driver && for minor in 0 1; do
	mkdir -p /proc/driver/nvidia/gpus/$minor &&
	printf 'GPU UUID: \t GPU-%d\nDevice Minor: \t %d\n' $minor $minor >/proc/driver/nvidia/gpus/$minor/information
done`)
	t.Cleanup(func() { l.out("umount /proc/driver; rm -r /dev/fakes") })
	const script = `look() { for minor in 0 1 255; do (: <>/dev/fakes/$minor); done 2>&1 | sed 's/.*: //'; : >/dev/null; head -c 1 /dev/urandom >/dev/full; }
look; until [ -e /tmp/again ]; do sleep 0.1; done; look; sleep 1000`
	const denied, reached = "Operation not permitted", "No such device or address"
	const full = "head: write error: No space left on device"
	for name, c := range map[string]struct {
		visible string
		want    []string
	}{
		"none":   {"", []string{denied, denied, denied}},
		"first":  {"GPU-0", []string{reached, denied, reached}},
		"second": {"GPU-1", []string{denied, reached, reached}},
		"both":   {"GPU-0,GPU-1", []string{reached, reached, reached}},
	} {
		spec := l.script(name, script)
		if c.visible != "" {
			spec.Env["NVIDIA_VISIBLE_DEVICES"] = c.visible
		}
		want := strings.Join(append(c.want, full), "\n") + "\n"
		l.start(spec)
		l.eventually(name+" to have looked", func() bool { return strings.Count(l.log(spec), "\n") >= 4 })
		l.sh("systemctl daemon-reload && touch /tmp/again")
		l.eventually(name+" to have looked again", func() bool { return strings.Count(l.log(spec), "\n") >= 8 })
		if got := l.log(spec); got != want+want {
			t.Errorf("%s finds\n%s\nwant twice\n%s", name, got, want)
		}
		l.sh("rm /tmp/again")
	}
}
