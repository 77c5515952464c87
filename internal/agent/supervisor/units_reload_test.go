//go:build linux

package supervisor_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
)

// TestUnitReloads: members start and end as usual while systemd reloads its units repeatedly, as when packages are
// installed.
func TestUnitReloads(t *testing.T) {
	l := newHostLab(t, "reloads")
	ctx, cancel := context.WithCancel(t.Context())
	reloads := make(chan int)
	go func() {
		count := 0
		defer func() { reloads <- count }()
		for ctx.Err() == nil {
			if _, err := l.host.Run(ctx, "systemctl daemon-reload"); err == nil {
				count++
			}
		}
	}()
	const folder = `/srv/odd $HOME %n;\x41\`
	l.sh("mkdir -p '" + folder + "'")
	want := fmt.Sprintf("%s\nops\n77\n", folder)
	for round := range 12 {
		var members []domain.MemberSpec
		for i := range 8 {
			spec := l.script(fmt.Sprintf("member-%d-%d", round, i), `pwd; id -un; ulimit -n; exit "$1"`)
			spec.Command = append(spec.Command, "a $HOME; %n", "6")
			spec.WorkingDir, spec.Container.User = folder, "ops"
			spec.Container.Ulimits = map[string]domain.Ulimit{"nofile": {Soft: 77, Hard: 99}}
			members = append(members, spec)
			l.start(spec)
		}
		for _, spec := range members {
			if state := l.await(spec, domain.StateFailed); *state.ExitCode != 6 || l.log(spec) != want {
				t.Errorf("%s: code %d, %s: it says %q", spec.Name, *state.ExitCode, state.LastError, l.log(spec))
			}
		}
	}
	cancel()
	t.Logf("systemd read its units again %d times", <-reloads)
}
