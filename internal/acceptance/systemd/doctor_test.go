//go:build linux

package systemd_test

import (
	"context"
	"encoding/json"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/trainyard/terraform-provider-trainyard/internal/acceptance"
	"github.com/trainyard/terraform-provider-trainyard/internal/acctest"
	"github.com/trainyard/terraform-provider-trainyard/internal/acctest/testbed"
	"github.com/trainyard/terraform-provider-trainyard/internal/doctor"
)

// examine returns what the command says of hosts, by their addresses, and its exit code.
func (l *lab) examine(args ...string) (map[string]doctor.HostReport, int) {
	l.Helper()
	args = append([]string{
		"doctor", "--json", "--identity-file", l.bed.KeyFile, "--known-hosts-file", l.bed.KnownHosts,
	},
		args...)
	command := exec.CommandContext(context.WithoutCancel(l.Context()), l.provider, args...)
	output, _ := command.Output() // it fails if there are problems
	var report doctor.Report
	if err := json.Unmarshal(output, &report); err != nil {
		l.Fatalf("%v says %q: %v", args, output, err)
	}
	hosts := map[string]doctor.HostReport{}
	for _, host := range report.Hosts {
		hosts[host.Address] = host
	}
	return hosts, command.ProcessState.ExitCode()
}

// problems are the checks of a host with problems, and the commands that mend them.
func problems(host doctor.HostReport) (checks, fixes []string) {
	for _, f := range host.Checks {
		if f.Result == doctor.Problem {
			checks, fixes = append(checks, f.Check), append(fixes, f.Fix)
		}
	}
	return checks, fixes
}

// A host that is fit for an engine has no problems. One that isn't is fit once the suggested fixes are done.
func TestAccDoctor(t *testing.T) {
	l := newLab(t, 0, 1)
	fit, sick := address(l.hosts[0]), "ssh://patient@"+l.hosts[1].SSH
	on := func(command string) string { t.Helper(); return l.on(l.hosts[1], "%s", command) }
	on("useradd --create-home patient && mkdir -p /home/patient/.ssh && cp /root/.ssh/authorized_keys /home/patient/.ssh/ && chown -R patient: /home/patient")
	t.Cleanup(func() {
		on("rm -f /etc/sudoers.d/trainyard; userdel --remove --force patient 2>/dev/null || ! id patient")
	})

	hosts, code := l.examine("--engine", "systemd", fit, sick)
	if checks, _ := problems(hosts[fit]); checks != nil || hosts[fit].Error != "" || !hosts[fit].Ready["systemd"] {
		t.Errorf("a fit host is %+v", hosts[fit])
	}
	checks, fixes := problems(hosts[sick])
	if !slices.Equal(checks, []string{"sudo"}) || code != 1 {
		t.Fatalf("the exit code is %d, and the host is %+v", code, hosts[sick])
	}
	on(fixes[0])
	if hosts, code = l.examine("--engine", "systemd", sick); code != 0 || !hosts[sick].Ready["systemd"] {
		t.Errorf("after %q, the exit code is %d, and the host is %+v", fixes[0], code, hosts[sick])
	}
	if hosts, code = l.examine(fit, "ssh://ops@127.0.0.1:1"); code != 2 || hosts["ssh://ops@127.0.0.1:1"].Error == "" {
		t.Errorf("the exit code is %d, and the hosts are %+v", code, hosts)
	}
	// These hosts have no Docker Engine, and without GPUs nothing else is missing for a Swarm.
	if checks, _ := problems(hosts[fit]); !slices.Equal(checks, []string{"docker"}) || hosts[fit].Ready["swarm"] ||
		!hosts[fit].Ready["systemd"] {
		t.Errorf("for both engines, the host is %+v", hosts[fit])
	}
}

// squatter is a service that has a port of a Swarm.
const squatter = `[Service]
ExecStartPre=/bin/mkdir -p /run/sshd
ExecStart=/usr/sbin/sshd -D -p 7946
[Install]
WantedBy=multi-user.target
`

// A host with a Docker Engine is fit for a Swarm, but for a port that somebody else has, and a user who is not let in.
func TestAccDoctorOfSwarm(t *testing.T) {
	acceptance.Test(t)
	bed := testbed.NewHosts(t, testbed.HostOptions{Hosts: 1, Docker: true, Mounts: []string{shared}})
	l := openLab(t, bed, acctest.Build(t, acctest.Provider), 0)
	host := l.hosts[0]
	expect := func(user string, want ...string) (fixes []string) {
		t.Helper()
		at := "ssh://" + user + "@" + host.SSH
		hosts, code := l.examine("--engine", "swarm", at)
		checks, fixes := problems(hosts[at])
		if !slices.Equal(checks, want) || (code == 0) != (want == nil) {
			t.Fatalf("the exit code is %d, and the problems are %q, want %q: %+v", code, checks, want, hosts[at])
		}
		return fixes
	}
	expect("root")
	l.on(host, "%s", "cat >/etc/systemd/system/squatter.service <<'END'\n"+squatter+
		"END\nsystemctl daemon-reload && systemctl enable --now squatter")
	acctest.Eventually(t, "somebody to have the port",
		func() bool { return strings.Contains(l.on(host, "ss -lnt"), ":7946 ") })
	l.on(host, "%s", expect("root", "swarm-ports")[0])
	expect("root")
	l.on(host, "%s", expect("ops", "docker")[0])
	expect("ops")
}
