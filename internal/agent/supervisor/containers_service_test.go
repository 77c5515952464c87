//go:build linux

package supervisor_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
)

// snapService is the service of an Engine installed as a snap, which listens by itself: no socket unit starts it.
const snapService = "snap.docker.dockerd.service"

const snapUnit = `[Unit]
StartLimitIntervalSec=0
After=dbus.service
[Service]
Type=notify
ExecStart=/usr/sbin/dockerd --host unix:///run/docker.sock
Delegate=yes
KillMode=process
[Install]
WantedBy=multi-user.target
`

// TestContainerEngineService: what its Engine ended while no supervisor was running is started again, whichever service
// the Engine runs in, and what ended by itself before counts as ended.
func TestContainerEngineService(t *testing.T) {
	l := newContainerLab(t, "c-service")
	for number, service := range []string{"docker.service", snapService} {
		if service == snapService {
			l.snap()
		}
		graceful := l.contained(fmt.Sprint("graceful-", number),
			"trap 'exit 0' TERM; echo ready; while :; do sleep 0.05; done") // it looks as if it completed
		restarting(&graceful, 1)
		early := l.contained(fmt.Sprint("early-", number),
			"echo ready; until [ -e /srv/of-c-service ]; do sleep 0.01; done")
		early.Mounts = []domain.Mount{{Source: "/srv", Target: "/srv"}}
		restarting(&early, 1)
		l.running(graceful)
		l.running(early)
		ends := l.containerOf(early)
		l.sh("systemctl stop " + l.unit + " && touch /srv/of-c-service")
		l.eventually("it to end",
			func() bool { return l.out("docker inspect --format '{{.State.Status}}' "+ends) == "exited" })
		l.sh("systemctl restart " + service + " && systemctl start " + l.unit)
		if state := l.await(early, domain.StateCompleted); *state.ExitCode != 0 {
			t.Errorf("%s: %+v", service, state)
		}
		l.eventually("the member to run again after "+service+" was restarted",
			func() bool { return strings.Count(l.log(graceful), "ready") == 2 })
		if state := l.await(graceful, domain.StateRunning); state.Restarts != 0 {
			t.Errorf("%s: %+v", service, state)
		}
		l.sh("rm /srv/of-c-service")
		l.stop(graceful)
		l.await(graceful, domain.StateStopped)
	}
}

// snap runs the host's Engine in a service with another name until the test ends.
func (l *hostLab) snap() {
	l.Helper()
	file := "/etc/systemd/system/" + snapService
	l.Cleanup(func() {
		l.out("systemctl disable --now --quiet " + snapService + "; rm " + file)
		l.out(
			"systemctl daemon-reload; systemctl enable --quiet docker.socket docker.service; systemctl start docker.socket docker.service",
		)
	})
	l.sh("systemctl disable --now --quiet docker.socket docker.service")
	l.must(os.WriteFile(l.path(file), []byte(snapUnit), 0o644)) //nolint:gosec // as units are
	l.sh("systemctl daemon-reload && systemctl enable --now --quiet " + snapService)
}
