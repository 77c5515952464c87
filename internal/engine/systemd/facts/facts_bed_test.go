//go:build linux

package facts

import (
	"context"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/trainyard/terraform-provider-trainyard/internal/acctest"
	"github.com/trainyard/terraform-provider-trainyard/internal/acctest/testbed"
	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/sshclient"
)

func TestMain(m *testing.M) { acctest.Main(m, testbed.CloseShared) }

// TestHost reads the facts about a real host, as each kind of user.
func TestHost(t *testing.T) {
	bed := testbed.SharedHosts(t, testbed.HostOptions{Hosts: 1})
	host := bed.Hosts[0]
	run := func(command string) string { return onHost(t, host, command) }
	run("useradd --create-home guest && cp -r /home/ops/.ssh /home/guest/ && chown -R guest: /home/guest/.ssh")
	t.Cleanup(func() { run("userdel --remove --force guest 2>/dev/null || ! id guest; rm -rf /var/lib/trainyard") })
	digest := strings.Repeat("0a", 32)
	run("mkdir -p -m 700 /var/lib/trainyard && cd /var/lib/trainyard && mkdir -p clusters/lab bin/" + digest +
		" && printf program >bin/" + digest +
		"/trainyard && printf half >bin/.upload.1 && chmod 755 bin/*/* bin/.upload.1")

	views := map[string]Facts{}
	for _, user := range []string{"root", "ops", "guest"} {
		f, err := Read(t.Context(), as(t, bed, host, user))
		must(t, err)
		views[user] = f
		want := Facts{
			User: user, Root: user != "guest", Hostname: host.Name,
			MachineID: run("cat /etc/machine-id"), BootID: run("cat /proc/sys/kernel/random/boot_id"),
			Architecture: runtime.GOARCH, Init: "systemd", SystemdRuns: true,
		}
		got := Facts{
			User: f.User, Root: f.Root, Hostname: f.Hostname, MachineID: f.MachineID, BootID: f.BootID,
			Architecture: f.Architecture, Init: f.Init, SystemdRuns: f.SystemdRuns,
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("as %s (-want +got):\n%s", user, diff)
		}
		if f.Systemd < oldestSystemd || f.Glibc == "" || f.ControlGroups == "" || f.Capacity.CPUs < 1 ||
			f.Capacity.MemoryMiB < 1 || f.Apart != 0 {
			t.Errorf("as %s: %+v", user, f)
		}
		if len(f.Loaders) == 0 || !strings.Contains(f.Loaders[0], "ld-linux") {
			t.Errorf("as %s, its loaders are %q", user, f.Loaders)
		}
		if !slices.Contains(f.Ports, 22) || !slices.Contains(f.Addresses, host.Address.String()) {
			t.Errorf("as %s, it listens on %v of %v", user, f.Ports, f.Addresses)
		}
		known, err := os.ReadFile(bed.KnownHosts)
		must(t, err)
		// The host may have keys that its server does not use.
		if !slices.ContainsFunc(f.HostKeys, func(key string) bool {
			return strings.Contains(string(known), " "+key+"\n")
		}) {
			t.Errorf("as %s, its keys are %q", user, f.HostKeys)
		}
		var programs []Program
		var clusters []string
		if f.Root {
			programs, clusters = []Program{{digest, "trainyard", 7}}, []string{"lab"}
		}
		if diff := cmp.Diff([]any{programs, clusters}, []any{f.Programs, f.Clusters}); diff != "" {
			t.Errorf("as %s (-want +got):\n%s", user, diff)
		}
	}

	delete(views, "guest")
	problems := CheckAll(views, []string{runtime.GOARCH})
	if diff := cmp.Diff([]string{"Host declared twice"}, faults(problems)); diff != "" {
		t.Errorf("(-want +got):\n%s\n%v", diff, problems)
	}
	guest, err := Read(t.Context(), as(t, bed, host, "guest"))
	must(t, err)
	problems = Check("gpu1", guest, []string{runtime.GOARCH})
	if diff := cmp.Diff([]string{"No root access"}, faults(problems)); diff != "" ||
		!strings.Contains(problems.Error(), "(a password is required)") {
		t.Errorf("(-want +got):\n%s\n%v", diff, problems)
	}
	// Following the advice helps.
	_, command, _ := strings.Cut(problems[0].Detail, "On the host, run: ")
	run(command)
	t.Cleanup(func() { run("rm -f /etc/sudoers.d/trainyard") })
	guest, err = Read(t.Context(), as(t, bed, host, "guest"))
	must(t, err)
	if problems := faults(Check("gpu1", guest, []string{runtime.GOARCH})); problems != nil {
		t.Errorf("after %q, the problems are %q", command, problems)
	}
}

// TestHostDisk: the mount at the folder for our programs is detected, and the advice fixes it.
func TestHostDisk(t *testing.T) {
	bed := testbed.SharedHosts(t, testbed.HostOptions{Hosts: 1})
	host := bed.Hosts[0]
	run := func(command string) { onHost(t, host, command) }
	run("mkdir -p /var/lib/trainyard && mount -t tmpfs -o size=100m,noexec none /var/lib/trainyard")
	t.Cleanup(func() { run("umount /var/lib/trainyard && rmdir /var/lib/trainyard") })
	check := func(want ...string) domain.Problems {
		t.Helper()
		f, err := Read(t.Context(), as(t, bed, host, "ops"))
		must(t, err)
		problems := Check("gpu1", f, []string{runtime.GOARCH})
		if diff := cmp.Diff(want, faults(problems)); diff != "" {
			t.Errorf("(-want +got):\n%s\n%v", diff, problems)
		}
		return problems
	}
	mend := func(problem domain.Problem) {
		t.Helper()
		run(problem.Detail[strings.LastIndex(problem.Detail, "sudo mount"):])
	}
	mend(check("Disk mounted noexec", "Disk full")[0])
	run("mount -o remount,ro /var/lib/trainyard")
	mend(check("Read-only disk", "Disk full")[0])
	_ = check("Disk full")
}

// onHost runs a command on a host, even while a test cleans up.
func onHost(t *testing.T, host *testbed.Host, command string) string {
	t.Helper()
	output, err := host.Run(context.WithoutCancel(t.Context()), command)
	must(t, err)
	return output
}

// faults returns the summaries of errors, without warnings: a kernel without some feature is no fault of the host.
func faults(problems domain.Problems) []string {
	return summaries(slices.DeleteFunc(slices.Clone(problems),
		func(problem domain.Problem) bool { return problem.Warning }))
}

// as returns a client of a host that logs in as a user.
func as(t *testing.T, bed *testbed.Hosts, host *testbed.Host, user string) *sshclient.Client {
	t.Helper()
	address, err := sshclient.ParseHost(user + "@" + host.SSH)
	must(t, err)
	client, err := sshclient.New(address, sshclient.Credentials{
		IdentityFiles: []string{bed.KeyFile}, KnownHosts: []string{bed.KnownHosts},
	}, 0)
	must(t, err)
	return client
}
