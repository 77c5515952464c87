//go:build linux

package systemd_test

import (
	"fmt"
	"maps"
	"os"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/trainyard/terraform-provider-trainyard/internal/acctest"
	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/systemd/layout"
)

// TestOddHosts: hosts that lack something are refused with advice; those that are merely unusual work like any others.
func TestOddHosts(t *testing.T) {
	f := newHostsOf(t, 2)
	for _, c := range []struct {
		name string
		test func(faulty)
	}{
		{"refused", faulty.refusesOddHosts}, {"read-only usr, noexec tmp", faulty.worksOnReadOnlyUsr},
		{"clocks an hour off", faulty.worksWithClocksOff},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := f
			f.T = t
			c.test(f)
		})
	}
}

// instead returns a command that replaces a program by a script, for everything that finds it by PATH, and one that
// undoes that.
func instead(program, script string) (does, undoes string) {
	path := "/usr/local/bin/" + program
	return fmt.Sprintf("cat >%[1]s <<'END' && chmod 755 %[1]s\n#!/bin/sh\n%[2]s\nEND", path, script), "rm " + path
}

// refusesOddHosts: what a host lacks is reported at its address in the plan, with the value and what is allowed; and
// nothing is installed there.
func (f faulty) refusesOddHosts() {
	mounted := func(flags string) (does, undoes string) {
		return fmt.Sprintf("mkdir -p %[1]s && mount -t tmpfs -o size=600m,%[2]s none %[1]s", layout.Home,
			flags), "umount " + layout.Home
	}
	const needs = "Trainyard needs systemd 247 or newer as PID 1, as in Debian 11, Ubuntu 22.04, RHEL 9 and later"
	type oddity struct{ does, undoes string }
	of := func(does, undoes string) oddity { return oddity{does, undoes} }
	for name, c := range map[string]struct {
		oddity
		summary, detail string
	}{
		"another architecture": {
			of(instead("uname", `[ "$*" = -m ] && echo ppc64le || exec /bin/uname "$@"`)),
			"No program for the architecture",
			"has the architecture ppc64le (ppc64le); Trainyard has programs for " + runtime.GOARCH +
				`. Set one for it in the provider's configuration: agent_binaries = { ppc64le = "PATH" }`,
		},
		"no systemd": {
			oddity{"mount --bind /dev/null /bin/systemctl", "umount /bin/systemctl"}, "No systemd",
			"has no systemd: it runs Debian GNU/Linux 12 (bookworm), with systemd as PID 1; " + needs +
				". Use another host, or install a distribution with systemd on this one",
		},
		"another first process": {
			oddity{
				"echo tini >/var/tmp/comm && mount --bind /var/tmp/comm /proc/1/comm && mv /run/systemd/system /run/systemd/away",
				"mv /run/systemd/away /run/systemd/system && umount /proc/1/comm",
			}, "No systemd",
			"has systemd 252, but PID 1 is tini; " + needs +
				". If it is a container, use the machine that it runs on; otherwise boot it with init=/lib/systemd/systemd",
		},
		"an old systemd": {
			of(instead("systemctl", `echo "systemd 245 (245.4-4ubuntu3)"`)), "systemd too old",
			"has systemd 245 (Debian GNU/Linux 12 (bookworm)); " + needs +
				". Use another host, or upgrade the system to a newer release",
		},
		"a read-only place": {
			of(mounted("ro")), "Read-only disk",
			"has /var/lib/trainyard on a file system that root can't write to, mounted at /var/lib/trainyard (ro,relatime); " +
				"Trainyard keeps its programs and the state of members in /var/lib/trainyard. Make it writable: sudo mount -o remount,rw /var/lib/trainyard",
		},
		"a place without programs": {
			of(mounted("noexec")), "Disk mounted noexec",
			"has /var/lib/trainyard on a file system that doesn't allow execution, mounted at /var/lib/trainyard (rw,noexec,relatime); " +
				"Trainyard's programs are in /var/lib/trainyard/bin. Remount it, and remove noexec from /etc/fstab: sudo mount -o remount,exec /var/lib/trainyard",
		},
	} {
		f.sh(1, c.does)
		_, problems, err := f.Complete(f.bounded(), f.spec)
		formed := formed(f.bounded(), f.Engine, f.spec)
		f.sh(1, c.undoes)
		f.must(err)
		want := domain.Problems{{
			Path: domain.Path{"hosts", domain.Key(f.host(1).Name), "address"}, Summary: c.summary,
			Detail: fmt.Sprintf("host %q (ops@%s) %s", f.host(1).Name, f.host(1).SSH, c.detail),
		}}
		if diff := cmp.Diff(want, problems); diff != "" {
			f.Errorf("%s (-want +got):\n%s", name, diff)
		}
		if formed == nil || !strings.Contains(formed.Error(), c.detail) {
			f.Errorf("%s: the apply: %v", name, formed)
		}
	}
	f.nothingLeft(f.spec.Name)
}

// worksOnReadOnlyUsr: nothing of ours is below /usr, and nothing is executed in /tmp.
func (f faulty) worksOnReadOnlyUsr() {
	for i := range f.bed.Hosts {
		f.sh(i, `mount --bind /usr /usr && mount -o remount,bind,ro /usr && mount -o remount,noexec /tmp
			printf '#!/bin/sh\n' >/tmp/script && chmod 755 /tmp/script && ! touch /usr/file /usr/local/bin/file 2>/dev/null && ! /tmp/script 2>/dev/null`)
	}
	f.form(f.spec)
	g := f.group("job", []int{0, 1}, "wait")
	f.update(g)
	f.startedOnce(g)
	f.finish()
	for i := range f.bed.Hosts {
		f.sh(i, "mount -o remount,bind,rw /usr && mount -o remount,exec /tmp && rm "+startsFile)
	}
}

// worksWithClocksOff: clocks of two hosts that are two hours apart, and differ from this machine's too, cause a
// warning, but nothing fails.
func (f faulty) worksWithClocksOff() {
	clock, off := acctest.BuildOffClock(f.T), []time.Duration{-time.Hour, time.Hour}
	for i, off := range off {
		f.sh(i,
			fmt.Sprintf("printf %%s %d >%s && cp %s /lib/clock.so && echo /lib/clock.so >/etc/ld.so.preload && systemctl daemon-reexec",
				int(off.Seconds()), clock.Says, clock.Library))
	}
	f.Engine = f.open(0, clock.Program)
	_, problems, err := f.Complete(f.bounded(), f.spec)
	f.must(err)
	f.must(problems.Err())
	for i, want := range []string{"behind", "ahead of"} {
		pattern := regexp.MustCompile("^host \"" + f.host(i).Name + `" \(.*\) has a clock (1h0m\ds|5\dm\d+s) ` + want +
			" this machine's .* a minute is allowed")
		if len(problems) != 2 || !problems[i].Warning || problems[i].Path.String() != fmt.Sprintf("hosts[%q].address",
			f.host(i).Name) || !pattern.MatchString(problems[i].Detail) {
			f.Fatalf("the plan says %v", problems)
		}
	}

	f.form(f.spec)
	for _, scope := range domain.RestartScopes {
		g := f.group("by-"+string(scope), []int{0, 1}, "wait")
		g.RestartScope = scope
		f.update(g)
		f.startedOnce(g)
		for i, off := range off {
			o := f.observed(f.Engine, g.Name)[domain.MemberName(g.Name, fmt.Sprint("on", i+1), 0)]
			if o.StartedAt == nil || time.Until(*o.StartedAt).Round(time.Hour) != off {
				f.Errorf("%s was just started, since %v: the clock of its host is not off", o.Name, o.StartedAt)
			}
		}
		// The end is in the future by the controller's clock.
		f.sh(1, fmt.Sprintf(
			`for p in $(pgrep -f '^%s wait'); do case $(readlink /proc/$p/cwd) in */%s-*) kill -KILL $p;; esac; done`,
			f.member, g.Name,
		))
		starts := map[string]int{domain.MemberName(g.Name, "on1", 0): 1, domain.MemberName(g.Name, "on2", 0): 2}
		if scope == domain.ScopeGroup {
			starts[domain.MemberName(g.Name, "on1", 0)] = 2
		}
		f.eventually(fmt.Sprintf("starts of %v", starts), func() bool { return maps.Equal(f.starts(g.Name), starts) })
		f.eventually("all of group "+g.Name+" to run", func() bool {
			for _, o := range f.observed(f.Engine, g.Name) {
				if o.State != domain.StateRunning {
					return false
				}
			}
			return len(f.processes(g.Name)) == 2
		})
	}

	release, err := f.Lock(f.bounded(), "mine", engine.Holder{Who: "one", Process: os.Getpid()})
	f.must(err)
	other := f.open(1, clock.Program)
	if _, err := other.Lock(f.bounded(), "mine", engine.Holder{Who: "other", Process: os.Getpid()}); err == nil ||
		!strings.Contains(err.Error(), "locked by one") {
		f.Errorf("another finds the lock: %v", err)
	}
	f.must(release())
	release, err = other.Lock(f.bounded(), "mine", engine.Holder{Who: "other", Process: os.Getpid()})
	f.must(err)
	f.must(release())
	f.finish()
}
