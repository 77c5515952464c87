//go:build linux

package testbed

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/knownhosts"

	"github.com/trainyard/terraform-provider-trainyard/internal/acctest"
)

// two is the bed that most tests of hosts use.
var two = HostOptions{Hosts: 2}

// clientConfig is the configuration of an SSH client that uses the bed's key files.
func clientConfig(t testing.TB, bed *Hosts, user string) *ssh.ClientConfig {
	t.Helper()
	private, err := os.ReadFile(bed.KeyFile)
	if err != nil {
		t.Fatal(err)
	}
	key, err := ssh.ParsePrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	known, err := knownhosts.New(bed.KnownHosts)
	if err != nil {
		t.Fatal(err)
	}
	return &ssh.ClientConfig{User: user, Auth: []ssh.AuthMethod{ssh.PublicKeys(key)}, HostKeyCallback: known}
}

// login logs in to a host until the test ends.
func login(t testing.TB, bed *Hosts, host *Host, user string) *ssh.Client {
	t.Helper()
	client, err := ssh.Dial("tcp", host.SSH, clientConfig(t, bed, user))
	if err != nil {
		t.Fatalf("%s@%s: %v", user, host.Name, err)
	}
	t.Cleanup(func() { _ = client.Close() }) // the host may be gone
	return client
}

// over runs a command over SSH.
func over(client *ssh.Client, command string) (string, error) {
	session, err := client.NewSession()
	if err != nil {
		return "", err
	}
	defer session.Close()
	output, err := session.CombinedOutput(command)
	return strings.TrimSpace(string(output)), err
}

// on runs a command on a host as root, and fails the test if the command fails.
func on(t testing.TB, host *Host, command string) string {
	t.Helper()
	output, err := host.Run(limited(t), command)
	if err != nil {
		t.Fatal(err)
	}
	return output
}

// bootID identifies a host's current boot.
func bootID(t testing.TB, host *Host) string {
	t.Helper()
	return on(t, host, "cat /proc/sys/kernel/random/boot_id")
}

func TestLogin(t *testing.T) {
	bed := SharedHosts(t, two)
	for _, host := range bed.Hosts {
		for user, want := range map[string]string{"root": "root", "ops": "ops root"} {
			output, err := over(login(t, bed, host, user), "echo $(hostname; id -un; [ $(id -u) = 0 ] || sudo id -un)")
			if want = host.Name + " " + want; err != nil || output != want {
				t.Errorf("%s@%s: %q, %v; want %q", user, host.Name, output, err, want)
			}
		}
		address := net.JoinHostPort(host.Address.String(), strconv.Itoa(sshPort))
		connection, err := bed.DialContext(limited(t), "tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		defer connection.Close()
		if _, _, _, err := ssh.NewClientConn(connection, address, clientConfig(t, bed, "root")); err != nil {
			t.Errorf("%s by its address: %v", host.Name, err)
		}
	}
}

func TestLoginRefused(t *testing.T) {
	bed := SharedHosts(t, two)
	config := clientConfig(t, bed, "root")
	public, err := newKey(filepath.Join(t.TempDir(), "stranger"))
	if err != nil {
		t.Fatal(err)
	}
	config.HostKeyCallback = ssh.FixedHostKey(public)
	_, err = ssh.Dial("tcp", bed.Hosts[0].SSH, config)
	if err == nil || !strings.Contains(err.Error(), "host key mismatch") {
		t.Errorf("a host with another key than the expected one: %v", err)
	}
	config = clientConfig(t, bed, "root")
	config.Auth = []ssh.AuthMethod{ssh.Password("")}
	_, err = ssh.Dial("tcp", bed.Hosts[0].SSH, config)
	if err == nil || !strings.Contains(err.Error(), "unable to authenticate") {
		t.Errorf("root without the key: %v", err)
	}
}

func TestHostsReachEachOther(t *testing.T) {
	bed := SharedHosts(t, two)
	for _, to := range []string{"host2", bed.Hosts[1].Address.String()} {
		banner := on(t, bed.Hosts[0], "timeout 60 bash -c 'head -n 1 < /dev/tcp/"+to+"/22'")
		if !strings.HasPrefix(banner, "SSH-2.0-OpenSSH") {
			t.Errorf("%s says %q", to, banner)
		}
	}
}

func TestHostsRunSystemd(t *testing.T) {
	bed := SharedHosts(t, two)
	for _, host := range bed.Hosts {
		acctest.Eventually(t, host.Name+" to run", func() bool {
			state, _ := host.Run(limited(t), "systemctl is-system-running") // fails in all other states
			return state == "running"
		})
	}
	host := bed.Hosts[0]
	if first := on(t, host, "cat /proc/1/comm"); first != "systemd" {
		t.Errorf("the first process is %s", first)
	}
	_, err := host.Run(limited(t), "systemd-run --quiet --collect --wait sh -c 'exit 7'")
	if err == nil || !strings.Contains(err.Error(), "exit status 7") {
		t.Errorf("a unit that exits with status 7: %v", err)
	}
	on(t, host, "systemd-run --quiet --wait --unit=talker echo said")
	acctest.Eventually(t, "the journal to have what a unit said", func() bool {
		// some versions fail if there is no entry
		output, _ := host.Run(limited(t), "journalctl --quiet --unit=talker --output=cat")
		return strings.Contains(output, "said")
	})
	// What a service leaves running ends with it.
	left := on(t, host, `systemd-run --quiet --unit=left --remain-after-exit sh -c 'sleep 1000 &'
systemctl stop left && pgrep -x sleep || echo none`)
	if left != "none" {
		t.Errorf("a unit that was stopped has left process %s", left)
	}
}

// TestBus opens systemd's D-Bus connection up to the authentication of users.
func TestBus(t *testing.T) {
	bed := SharedHosts(t, two)
	for user, id := range map[string]string{"root": "30", "ops": "31303030"} { // user IDs in hexadecimal ASCII
		bus, err := login(t, bed, bed.Hosts[0], user).Dial("unix", "/run/dbus/system_bus_socket")
		if err != nil {
			t.Fatalf("%s: %v", user, err)
		}
		defer bus.Close()
		if _, err := fmt.Fprintf(bus, "\x00AUTH EXTERNAL %s\r\n", id); err != nil {
			t.Fatal(err)
		}
		if answer, err := bufio.NewReader(bus).ReadString('\n'); err != nil || !strings.HasPrefix(answer, "OK ") {
			t.Errorf("the bus answers %s with %q, %v", user, answer, err)
		}
	}
	const name = "org.freedesktop.systemd1"
	version := "busctl get-property " + name + " /org/freedesktop/systemd1 " + name + ".Manager Version"
	if output, err := over(login(t, bed, bed.Hosts[0], "ops"), version); err != nil ||
		!strings.Contains(output, "252") {
		t.Errorf("systemd's version by the bus: %q, %v", output, err)
	}
}

func TestLimits(t *testing.T) {
	host := SharedHosts(t, two).Hosts[0]
	const take = "python3 -c 'bytearray(200 << 20)'"
	if _, err := host.Run(limited(t), "systemd-run --quiet --collect --wait -p MemoryMax=800M "+take); err != nil {
		t.Errorf("a unit that takes less than it may: %v", err)
	}
	_, err := host.Run(limited(t), "systemd-run --quiet --collect --wait -p MemoryMax=50M -p MemorySwapMax=0 "+take)
	if err == nil || !strings.Contains(err.Error(), "exit status") {
		t.Errorf("a unit that takes more memory than it may: %v", err)
	}
	const spin = `import time
end = time.monotonic() + 2
while time.monotonic() < end: pass
print(time.process_time())`
	spent := on(t, host, "systemd-run --quiet --pipe --wait -p CPUQuota=20% python3 -c '"+spin+"'")
	used, err := strconv.ParseFloat(spent, 64)
	if err != nil || used > 1 {
		t.Errorf("a unit that may use a fifth of a processor used one for %.2f of 2 s, %v", used, err)
	}
}

func TestMounts(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	script := filepath.Join(folder, "script")
	if err := os.WriteFile(script, []byte("#!/bin/sh\nhostname\n"), 0o755); err != nil { //nolint:gosec // to be run
		t.Fatal(err)
	}
	host := NewHosts(t, HostOptions{Hosts: 1, Mounts: []string{folder}}).Hosts[0]
	if output := on(t, host, script); output != host.Name {
		t.Errorf("a program of this machine said %q on the host", output)
	}
	if _, err := host.Run(limited(t), "touch "+folder+"/new"); err == nil ||
		!strings.Contains(err.Error(), "Read-only") {
		t.Errorf("writing into this machine's folder: %v", err)
	}
	on(t, host, "echo content > /srv/file")
	if content, err := os.ReadFile(host.Root() + "/srv/file"); err != nil || string(content) != "content\n" {
		t.Errorf("this machine sees %q in the host's file, %v", content, err)
	}
	if _, err := os.Stat("/srv/file"); !os.IsNotExist(err) {
		t.Errorf("the host writes to this machine: %v", err)
	}
}

// TestKernelIsNotTheHosts: root on a host can't change this machine's kernel settings.
func TestKernelIsNotTheHosts(t *testing.T) {
	bed := SharedHosts(t, two)
	host := bed.Hosts[0]
	client := login(t, bed, host, "root")
	for _, command := range []string{"date --set=@$(date +%s)", "echo 1 > /proc/sys/vm/drop_caches"} {
		if output, err := host.Run(limited(t), command); err == nil {
			t.Errorf("%s succeeds: %s", command, output)
		}
		if output, err := over(client, command); err == nil {
			t.Errorf("%s succeeds over SSH: %s", command, output)
		}
	}
}

// TestNetworkIsTheHosts: root on a host can change the host's network settings, without changing this machine's.
func TestNetworkIsTheHosts(t *testing.T) {
	t.Parallel()
	host := NewHosts(t, HostOptions{Hosts: 1}).Hosts[0]
	const setting, value = "/proc/sys/net/ipv4/ip_default_ttl", "99"
	on(t, host, "echo "+value+" > "+setting)
	if changed := on(t, host, "cat "+setting); changed != value {
		t.Errorf("%s is %s on the host", setting, changed)
	}
	if ours, err := os.ReadFile(setting); err != nil || strings.TrimSpace(string(ours)) == value {
		t.Errorf("%s is %s on this machine, too, %v", setting, ours, err)
	}
}

func TestPowerCut(t *testing.T) {
	t.Parallel()
	bed := NewHosts(t, HostOptions{Hosts: 1})
	host, ctx := bed.Hosts[0], limited(t)
	client := login(t, bed, host, "ops")
	before := bootID(t, host)
	on(t, host, `cat > /etc/systemd/system/member.service <<END
[Service]
ExecStart=/bin/sleep infinity
[Install]
WantedBy=multi-user.target
END
systemctl enable --now member && echo kept > /var/lib/kept && echo lost > /run/lost
nohup sleep 999 > /dev/null 2>&1 &`)
	acctest.Eventually(t, "the member to run", func() bool {
		_, err := host.Run(ctx, "pgrep -x sleep && test -e /run/lost")
		return err == nil
	})
	machine := on(t, host, "cat /etc/machine-id")

	for range 2 {
		if err := host.Kill(); err != nil {
			t.Fatal(err)
		}
	}
	if left := hostProcesses(t, bed.folder.name()); len(left) != 0 {
		t.Errorf("processes run on without power: %v", left)
	}
	if _, err := host.Run(ctx, "true"); err == nil || !strings.Contains(err.Error(), "Start boots it") {
		t.Errorf("a command without power: %v", err)
	}
	if _, err := os.Stat(host.Root()); !os.IsNotExist(err) {
		t.Errorf("the root without power: %v", err)
	}

	if err := host.Start(ctx); err != nil {
		t.Fatal(err)
	}
	if after := bootID(t, host); after == before {
		t.Errorf("it is still boot %s", after)
	}
	if after := on(t, host, "cat /etc/machine-id"); after != machine {
		t.Errorf("machine %s has become %s", machine, after)
	}
	if left := on(t, host, "ls -d /var/lib/kept /run/lost 2> /dev/null || true"); left != "/var/lib/kept" {
		t.Errorf("the power cut has left %q", left)
	}
	acctest.Eventually(t, "the member to run again", func() bool {
		_, err := host.Run(ctx, "systemctl is-active member")
		return err == nil
	})
	if _, err := over(client, "true"); err == nil {
		t.Error("a connection outlived the power cut")
	}
	if output, err := over(login(t, bed, host, "ops"), "hostname"); err != nil || output != host.Name {
		t.Errorf("after the power cut: %q, %v", output, err)
	}
}

func TestBootFails(t *testing.T) {
	t.Parallel()
	host := NewHosts(t, HostOptions{Hosts: 1}).Hosts[0]
	on(t, host, "rm /usr/lib/systemd/systemd")
	err := errors.Join(host.Kill(), host.Start(limited(t)))
	if want := "starting host1: systemd: no such file"; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("a host without systemd: %v, want %s", err, want)
	}
}

func TestReboot(t *testing.T) {
	t.Parallel()
	bed := NewHosts(t, HostOptions{Hosts: 1})
	host := bed.Hosts[0]
	before := bootID(t, host)
	if err := host.Reboot(limited(t)); err != nil {
		t.Fatal(err)
	}
	after := bootID(t, host)
	if after == before {
		t.Errorf("it is still boot %s", after)
	}
	// As somebody would who knows nothing about beds.
	_, _ = over(login(t, bed, host, "ops"), "sudo systemctl reboot") // the connection may end first
	acctest.Eventually(t, "the host to be another boot", func() bool {
		output, err := host.Run(limited(t), "cat /etc/hostname /proc/sys/kernel/random/boot_id")
		name, id, _ := strings.Cut(output, "\n")
		if err == nil && name != host.Name {
			t.Errorf("while it boots, commands run on %s", name)
		}
		return err == nil && id != after
	})
	if err := host.Start(limited(t)); err != nil {
		t.Fatal(err)
	}
	login(t, bed, host, "ops")
	_, _ = host.Run(limited(t), "systemctl poweroff") // as above
	acctest.Eventually(t, "the host to go off", func() bool {
		_, err := host.running()
		return err != nil
	})
	if err := host.Start(limited(t)); err != nil {
		t.Fatal(err)
	}
	login(t, bed, host, "root")
}

func TestCut(t *testing.T) {
	t.Parallel()
	bed := NewHosts(t, two)
	host, ctx := bed.Hosts[0], limited(t)
	client := login(t, bed, host, "root")
	if err := host.Cut(); err != nil {
		t.Fatal(err)
	}
	reachable := func() bool {
		ctx, cancel := context.WithTimeout(ctx, 300*time.Millisecond)
		defer cancel()
		connection, err := bed.DialContext(ctx, "tcp", net.JoinHostPort(host.Address.String(), strconv.Itoa(sshPort)))
		if err == nil {
			err = connection.Close()
		}
		return err == nil
	}
	if reachable() {
		t.Error("a host that is cut off can be reached")
	}
	answered := make(chan error, 1)
	go func() {
		_, err := over(client, "true")
		answered <- err
	}()
	on(t, host, "! timeout 1 bash -c 'echo < /dev/tcp/host2/22'")
	select {
	case err := <-answered:
		t.Errorf("a host that is cut off answers: %v", err)
	default:
	}
	if err := host.Heal(); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-answered:
		if err != nil {
			t.Errorf("a connection did not outlast the cut: %v", err)
		}
	case <-ctx.Done():
		t.Error("a connection does not go on after the cut")
	}
	login(t, bed, host, "ops")

	if err := errors.Join(host.Cut(), host.Kill(), host.Start(ctx)); err != nil {
		t.Fatal(err)
	}
	if reachable() {
		t.Error("the host's cable came back with its power")
	}
	if err := host.Heal(); err != nil {
		t.Fatal(err)
	}
	login(t, bed, host, "ops")
}

// hostProcesses are the processes in the control groups of a bed of hosts.
func hostProcesses(t testing.TB, name string) []string {
	t.Helper()
	in, err := hierarchies()
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, h := range in {
		_ = filepath.WalkDir(h.path(name), func(path string, entry os.DirEntry, err error) error {
			if err == nil && entry.Name() == "cgroup.procs" {
				content, _ := os.ReadFile(path) // the group may be gone
				found = append(found, strings.Fields(string(content))...)
			}
			return nil // a removed group has none
		})
	}
	return found
}

func TestHostsClose(t *testing.T) {
	SkipIfShort(t)
	bed, err := StartHosts(limited(t), two)
	if err != nil {
		t.Fatal(err)
	}
	name := bed.folder.name()
	if len(hostProcesses(t, name)) == 0 || len(controlGroups(t, name)) == 0 {
		t.Fatal("the bed has no processes or no control groups")
	}
	client := login(t, bed, bed.Hosts[0], "root")
	if err := errors.Join(bed.Close(), bed.Close()); err != nil {
		t.Fatal(err)
	}
	if _, err := over(client, "true"); err == nil {
		t.Error("a connection outlived its host")
	}
	wantNothingLeft(t, bed.folder.path)
	if err := bed.Hosts[0].Start(limited(t)); !errors.Is(err, net.ErrClosed) {
		t.Errorf("starting a host of a closed bed: %v", err)
	}
}

// wantNothingLeft fails unless everything is gone of the bed of hosts that had this folder.
func wantNothingLeft(t testing.TB, folder string) {
	t.Helper()
	name := filepath.Base(folder)
	if left := hostProcesses(t, name); len(left) != 0 {
		t.Errorf("processes are left: %v", left)
	}
	if left := controlGroups(t, name); len(left) != 0 {
		t.Errorf("control groups are left: %v", left)
	}
	if _, err := os.Stat(folder); !os.IsNotExist(err) {
		t.Errorf("the folder is left: %v", err)
	}
}
