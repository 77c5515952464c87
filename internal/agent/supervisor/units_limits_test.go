//go:build linux

package supervisor_test

import (
	"os"
	"strings"
	"testing"

	"github.com/trainyard/terraform-provider-trainyard/internal/agent/units"
	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
)

// TestUnitMemory: a member that exceeds its memory limit is ended, and that is reported.
func TestUnitMemory(t *testing.T) {
	l := newHostLab(t, "memory")
	limited := func(name, script string) domain.MemberSpec {
		spec := l.script(name, script)
		spec.Resources.Limits.MemoryMiB = 32
		return spec
	}
	const hungry = "tail /dev/zero"
	for _, spec := range []domain.MemberSpec{limited("alone", "exec "+hungry), limited("child", hungry+"; exit 9")} {
		state := l.ended(spec)
		if state.State != domain.StateFailed ||
			!strings.HasSuffix(state.LastError, ": out of memory: its limit is 32 MiB") {
			t.Errorf("%s is %s: %s", spec.Name, state.State, state.LastError)
		}
	}
	fine := l.ended(limited("fine", "head --bytes 4000000 /dev/zero | tail | wc --bytes; exit 6"))
	if fine.LastError != "exit code 6; restart condition is never" {
		t.Errorf("one within its limit: %s", fine.LastError)
	}
}

// TestUnitLimits: limits are in force, and units are in the slices of their cluster and group.
func TestUnitLimits(t *testing.T) {
	l := newHostLab(t, "limits-of")
	spec := l.script("member-0", `
for group in $(sed -n 's/^[0-9]*:cpu:/cpu/p; s/^[0-9]*:cpu,cpuacct:/cpu/p; s/^0:://p' /proc/self/cgroup); do
	cat /sys/fs/cgroup/$group/cpu.cfs_quota_us /sys/fs/cgroup/$group/cpu.max
done 2>/dev/null
ulimit -n; ulimit -Hn; ulimit -c; ulimit -Hl; cat /proc/self/cgroup`)
	spec.Resources.Limits.CPUs = 0.25
	spec.Container.Ulimits = map[string]domain.Ulimit{
		"nofile": {Soft: 100, Hard: 200}, "core": {Soft: 0, Hard: 0}, "memlock": {Soft: 4096, Hard: 8192},
	}
	if state := l.ended(spec); state.State != domain.StateCompleted {
		t.Fatal(state.LastError)
	}
	lines := strings.Split(l.log(spec), "\n")
	if got := lines[0]; got != "25000" && got != "25000 100000" {
		t.Errorf("the quota is %s", got)
	}
	if got := strings.Join(lines[1:5], " "); got != "100 200 0 8" {
		t.Errorf("the ulimits are %s", got)
	}
	slices := `/trainyard.slice/trainyard-limits\x2dof.slice/trainyard-limits\x2dof-job.slice/trainyard-limits\x2dof-member\x2d0-`
	if !strings.Contains(l.log(spec), slices) {
		t.Errorf("its control groups are\n%s", l.log(spec))
	}

	resident := l.script("resident", "cat /proc/self/cgroup")
	resident.Group = ""
	l.ended(resident)
	if !strings.Contains(l.log(resident),
		`/trainyard.slice/trainyard-limits\x2dof.slice/trainyard-limits\x2dof-resident-`) {
		t.Errorf("the control groups of a resident are\n%s", l.log(resident))
	}
}

// TestUnitLimitsInPlace: the limits of a running unit are changed at once if that is requested, except for less memory,
// and it keeps running.
func TestUnitLimitsInPlace(t *testing.T) {
	l := newHostLab(t, "in-place")
	spec := l.script("member-0", "exec sleep 1000")
	spec.Resources.Limits = domain.Resources{CPUs: 0.25, MemoryMiB: 64}
	limited := func(spec domain.MemberSpec, want string) {
		t.Helper()
		l.start(spec)
		unit := units.Name(l.cluster, spec.Name, l.await(spec, domain.StateRunning).Instance)
		var shown string
		defer func() { t.Logf("%s is limited to %s", unit, shown) }()
		l.eventually("the limits to be "+want, func() bool {
			shown = strings.Join(
				strings.Fields(l.sh("systemctl show --property=CPUQuotaPerSecUSec --property=MemoryMax '"+unit+"'")),
				" ",
			)
			return shown == want
		})
	}
	limited(spec, "CPUQuotaPerSecUSec=250ms MemoryMax=67108864")
	spec.Resources.Limits = domain.Resources{CPUs: 0.5, MemoryMiB: 128}
	first := l.state(spec).Instance
	limited(spec, "CPUQuotaPerSecUSec=250ms MemoryMax=67108864")
	spec.InPlace = true
	limited(spec, "CPUQuotaPerSecUSec=500ms MemoryMax=134217728")
	spec.Resources.Limits = domain.Resources{CPUs: 1, MemoryMiB: 32}
	limited(spec, "CPUQuotaPerSecUSec=1s MemoryMax=134217728")
	if state := l.state(spec); state.Instance != first || state.Restarts != 0 {
		t.Errorf("it was started again: %+v", state)
	}
	l.stop(spec)
	l.await(spec, domain.StateStopped)
}

// TestUnitUser: a member of another user has access to what it needs, and no more.
func TestUnitUser(t *testing.T) {
	l := newHostLab(t, "users")
	// The first member of a host runs a program that was brought, and keeps a folder in its working directory.
	first := l.member("first", l.bring("first", "#!/bin/sh\necho one >results/made && ls results"))
	first.Container.User, first.Kept = "ops", stateDir+"/users/work/first/results"
	if state := l.ended(first); state.State != domain.StateCompleted || l.log(first) != "made\n" {
		t.Errorf("the first is %s: %s\n%s", state.State, state.LastError, l.log(first))
	}

	ops := l.sh("id -u ops")
	brought := l.bring("code", "brought\n")
	for user, want := range map[string]string{
		"ops": "ops ops", ops: "ops ops", "ops:daemon": "ops daemon", ops + ":1": "ops daemon",
	} {
		name := "member-" + strings.ReplaceAll(user, ":", "-")
		spec := l.script(name, `set -e
echo "$(id -un) $(id -gn)"; echo more >>"$(pwd)/made"; cat "$BROUGHT" "$FILE" "$KEPT/config"; echo two >"$KEPT/config"; echo late >>/dev/stderr; ls -d "$KEPT"
! ls /var/lib/trainyard 2>/dev/null; ! cat /var/lib/trainyard/users/specs/* 2>/dev/null`)
		spec.Container.User = user
		spec.Files = []domain.File{{Name: "config", Content: "one\n"}}
		spec.Kept = "/srv/kept/of/" + name
		spec.Env["KEPT"], spec.Env["BROUGHT"] = spec.Kept, brought
		spec.Env["FILE"] = stateDir + "/users/files/" + name + "/config"
		spec.Restart = domain.RestartRule{Condition: domain.RestartAlways, MaxAttempts: 1}
		if state := l.ended(spec); state.State != domain.StateCompleted {
			t.Errorf("%s: %s", user, state.LastError)
		}
		once := want + "\nbrought\none\none\nlate\n" + spec.Kept + "\n"
		if got := l.log(spec); got != once+once {
			t.Errorf("%s says\n%s", user, got)
		}
	}

	// A link that a member has put into its folder can't mislead root: it is replaced.
	mean := l.script("mean", `cat "$KEPT/config"; rm "$KEPT/config"; ln -s /etc/shadow "$KEPT/config"; exit 3`)
	mean.Container.User, mean.Kept = "ops", "/srv/kept/mean"
	mean.Files = []domain.File{{Name: "config", Content: "root::0:0:::::\n"}}
	mean.Env["KEPT"] = mean.Kept
	mean.Restart = domain.RestartRule{
		Condition: domain.RestartOnFailure, MaxAttempts: 1, Final: domain.DefaultFinalExitCodes,
	}
	before, err := os.ReadFile(l.path("/etc/shadow"))
	l.must(err)
	if state := l.ended(mean); state.State != domain.StateFailed {
		t.Errorf("it is %s: %s", state.State, state.LastError)
	}
	if got, want := l.log(mean), strings.Repeat(mean.Files[0].Content, 2); got != want {
		t.Errorf("it has read\n%s", got)
	}
	if after, err := os.ReadFile(l.path("/etc/shadow")); err != nil || string(before) != string(after) {
		t.Errorf("/etc/shadow is now\n%s (%v)", after, err)
	}
}
