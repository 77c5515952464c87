//go:build linux

package systemd_test

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
	"github.com/trainyard/terraform-provider-trainyard/internal/reconcile"
)

// victims are the processes to kill, with the command for it, which runs on each host that has them.
var victims = map[string]string{
	"supervisor":                 `kill -9 $(systemctl show --property MainPID --value trainyard@lab.service)`,
	"agent":                      `pkill -9 -f '/[^ ]* agent --socket .*/clusters/lab/'`,
	"controller":                 `pkill -9 -f '/[^ ]* controller --engine systemd .*--cluster lab$'`,
	"relay":                      `pkill -9 -f ' relay$'`,
	"sessions of the SSH server": `pkill -9 -f '^sshd: (ops|root)'`,
	"connections with systemd":   `systemctl daemon-reexec`,
	"SSH server":                 `systemctl reset-failed ssh.service; ` + killSSH,
	"supervisor and controller":  `pkill -9 -f '/[^ ]* (supervise|controller) .*--cluster lab( |$)'`,
}

const (
	// killSSH kills the SSH server's main process, and returns when systemd has noticed; systemd starts another one
	// after 100 ms. Accepted connections continue in processes of their own.
	killSSH = `main() { systemctl show --property MainPID --value ssh.service; }
old=$(main); kill -9 "$old" && while [ "$(main)" = "$old" ]; do sleep 0.01; done`
	// awaitSSH returns when an SSH server runs.
	awaitSSH = "systemctl start ssh.service\n"
)

// kill kills one of the victims on all hosts that have it, and returns their number. Hosts are done one after the
// other, so that a victim that needs a login to recover has an SSH server.
func (f faulty) kill(victim string) (killed int) {
	for _, h := range f.bed.Hosts {
		if _, err := h.Run(context.Background(), awaitSSH+victims[victim]); err == nil {
			killed++
		}
	}
	f.tally.note("kill of "+victim, killed)
	return killed
}

// TestKilledBetweenApplies: processes of ours that are killed while members run take no member with them, and come back
// by themselves.
func TestKilledBetweenApplies(t *testing.T) {
	f := newFaulty(t)
	g := f.group("job", everyHost, "wait")
	f.update(g)
	for victim := range victims {
		f.eventually("a "+victim+" to kill", func() bool { return f.kill(victim) > 0 })
		t.Log("killed: ", victim)
		f.startedOnce(g)
	}
	f.anywhere(awaitSSH)
	// All are back: an end is noticed, and the controller stops the rest.
	f.sh(1, "pkill -TERM -f '^"+f.member+"'")
	f.eventually("the end of a member",
		func() bool { return f.observed(f.Engine, "job")["job-on2-0"].State == domain.StateCompleted })
	_, err := reconcile.Reconciler{Engine: f.Engine}.AwaitResidents(f.bounded())
	f.must(err)
	if starts := f.starts("job"); starts["job-on2-0"] != 1 {
		t.Errorf("a member that ended was started %d times", starts["job-on2-0"])
	}
	f.finish()
}

// TestKilledDuringApply: whatever is killed before each change of an apply, the apply either continues or says where it
// failed, and the next one converges. The same holds for each destroy.
func TestKilledDuringApply(t *testing.T) {
	f := newFaulty(t)
	for victim := range victims {
		t.Run(victim, func(t *testing.T) {
			f := f
			f.T = t
			g := f.group("g"+strings.ToLower(strings.ReplaceAll(victim, " ", "-")), everyHost, "wait")
			var kills atomic.Int32
			err := reconcile.Reconciler{Engine: f.deadly(victim, &kills)}.Update(f.bounded(), g)
			t.Logf("the apply, after %d kills: %v", kills.Load(), err)
			f.saysWhere(err)
			f.anywhere(awaitSSH)
			f.Engine = f.open(0, f.provider) // the next apply is another process, which remembers no failure to connect
			f.update(g)
			f.startedOnce(g)
			kills.Store(0)
			err = reconcile.Reconciler{Engine: f.deadly(victim, &kills)}.Destroy(f.bounded(), g.Name)
			t.Logf("the destroy, after %d kills: %v", kills.Load(), err)
			f.saysWhere(err)
			f.anywhere(awaitSSH)
			f.Engine = f.open(0, f.provider)
			f.destroy(g.Name)
		})
	}
	f.finish()
}

// deadly is the test's engine, which kills one of the victims before each change.
func (f faulty) deadly(victim string, kills *atomic.Int32) engine.Engine {
	return engine.Intercept(f.Engine, func(_ context.Context, call engine.Call, do func() error) error {
		if call.Changes {
			kills.Add(int32(f.kill(victim)))
		}
		return do()
	})
}

// saysWhere fails unless an error names a host, by its name or address.
func (f faulty) saysWhere(err error) {
	f.Helper()
	if err == nil {
		return
	}
	for _, h := range f.bed.Hosts {
		if strings.Contains(err.Error(), h.Name) || strings.Contains(err.Error(), fmt.Sprint(h.SSH)) {
			return
		}
	}
	f.Errorf("it names no host: %v", err)
}
