package doctor

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/trainyard/terraform-provider-trainyard/internal/acctest/sshd"
	"github.com/trainyard/terraform-provider-trainyard/internal/command"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/systemd"
)

// run returns what the command prints, and its exit code.
func run(t *testing.T, args ...string) (output string, code int) {
	t.Helper()
	var out bytes.Buffer
	err := Run(t.Context(), args, systemd.Program{}, &out)
	if exit, is := errors.AsType[*command.ExitError](err); is {
		return out.String() + exit.Reason, exit.Code
	}
	must(t, err)
	return out.String(), 0
}

// TestThisMachine: this machine is examined as any other is, whatever it lacks.
func TestThisMachine(t *testing.T) {
	needsLinux(t)
	output, code := run(t, "--json")
	var report Report
	must(t, json.NewDecoder(strings.NewReader(output)).Decode(&report))
	hostname, err := os.Hostname()
	must(t, err)
	if len(report.Hosts) != 1 || report.Hosts[0].Address != here || report.Hosts[0].Hostname != hostname ||
		report.Hosts[0].Error != "" {
		t.Fatalf("it says %s", output)
	}
	var names, want []string
	for _, f := range report.Hosts[0].Checks {
		names = append(names, f.Check)
		if !slices.Contains(results, f.Result) || f.Found == "" {
			t.Errorf("a check says %+v", f)
		}
		if f.Check == "architecture" && f.Result != OK {
			t.Errorf("this machine is another: %+v", f)
		}
	}
	for _, c := range checks {
		want = append(want, c.name)
	}
	if diff := cmp.Diff(want, names); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if (code == exitProblems) != (report.Problems > 0) || code == exitUnknown {
		t.Errorf("the exit code is %d: %s", code, output)
	}
	shown, _ := run(t)
	if !strings.HasPrefix(shown, hostname+" (this machine): ") || !strings.Contains(shown, "1 host, ") {
		t.Errorf("it shows %s", shown)
	}
}

// host is an SSH server in front of this machine, on which some commands answer otherwise.
func host(t *testing.T, commands map[string]string) *sshd.Server {
	t.Helper()
	bin := t.TempDir()
	for name, text := range commands {
		must(t, os.WriteFile(filepath.Join(bin, name), []byte("#!/bin/sh\n"+text+"\n"), 0o700)) //nolint:gosec // it is to be run
	}
	return sshd.Start(t, sshd.Options{Shell: true, Env: []string{"PATH=" + bin + ":" + os.Getenv("PATH")}})
}

// login writes key and known hosts to files, and returns the flags that name them.
func login(t *testing.T, servers ...*sshd.Server) []string {
	t.Helper()
	dir := t.TempDir()
	key, known := filepath.Join(dir, "key"), filepath.Join(dir, "known_hosts")
	must(t, os.WriteFile(key, []byte(sshd.PEM(t, sshd.User(), "")), 0o600))
	var lines string
	for _, server := range servers {
		lines += server.Known(t, sshd.Ed25519())
	}
	must(t, os.WriteFile(known, []byte(lines), 0o600))
	return []string{"--identity-file", key, "--known-hosts-file", known, "--user", "ops"}
}

// TestHosts: hosts are examined together, and distinguished; only one can be asked for what root alone may see.
func TestHosts(t *testing.T) {
	needsLinux(t)
	sshd.Isolate(t)
	one := host(t, map[string]string{"id": `[ "$ROOT" ] && echo 0 || echo 1000`, "sudo": `shift; ROOT=1 exec "$@"`})
	two := host(t, map[string]string{
		"id":   "case $1 in -u) echo 1000;; *) echo guest;; esac",
		"sudo": "echo 'sudo: a password is required' >&2; exit 1",
	})
	args := append(login(t, one, two), "--json", "ssh://"+one.Addr, "ssh://"+two.Addr, "--engine", "systemd")
	output, code := run(t, args...)
	var report Report
	must(t, json.NewDecoder(strings.NewReader(output)).Decode(&report))
	if len(report.Hosts) != 2 || report.Unreachable > 0 || code != exitProblems ||
		!slices.Equal(report.Engines, []string{"systemd"}) {
		t.Fatalf("the exit code is %d: %s", code, output)
	}
	for i, want := range []Result{OK, Problem} {
		host := report.Hosts[i]
		sudo := host.Checks[slices.IndexFunc(host.Checks, func(f Finding) bool { return f.Check == "sudo" })]
		if sudo.Result != want || host.Address != "ssh://"+[]*sshd.Server{one, two}[i].Addr ||
			want == Problem && host.Ready["systemd"] {
			t.Errorf("host %d is %+v", i, host)
		}
		if want == Problem && sudo.Fix != "echo 'guest ALL=(ALL) NOPASSWD: ALL' | sudo tee /etc/sudoers.d/trainyard" {
			t.Errorf("the fix is %s", sudo.Fix)
		}
	}
}

// TestUnreachable: hosts that can't be asked are distinguished from those with problems, and nothing that they print
// is a command to the terminal.
func TestUnreachable(t *testing.T) {
	needsLinux(t)
	sshd.Isolate(t)
	nologin := sshd.Start(t,
		sshd.Options{Commands: map[string]sshd.Command{"sh -s": {Stdout: "\x1b[2JThis account is not available.\n"}}})
	stranger := sshd.Start(t, sshd.Options{})
	args := append(login(t, nologin), "ssh://"+nologin.Addr, stranger.Addr, "127.0.0.1:1")
	output, code := run(t, args...)
	for _, part := range []string{
		"ssh://" + nologin.Addr + "\n  ", "This account is not available",
		"the host key of " + stranger.Addr + " is not known",
		"127.0.0.1:1 refuses connections", "3 hosts, 3 could not be examined",
	} {
		if !strings.Contains(output, part) {
			t.Errorf("%q is missing:\n%s", part, output)
		}
	}
	if code != exitUnknown || strings.ContainsRune(output, '\x1b') {
		t.Errorf("the exit code is %d: %q", code, output)
	}
}

func TestArguments(t *testing.T) {
	for _, test := range []struct {
		args, says string
	}{
		{"--engine process", `unknown engine "process"; use swarm or systemd`},
		{"--engines swarm", "flag provided but not defined"},
		{"tcp://gpu1", `"tcp://gpu1" is not a host address`},
		{"ssh://gpu1/run/docker.sock", "a path is not allowed"},
		{"ssh://ops:secret@gpu1", "a password can't be part of an address"},
		{"--jump-host a/b gpu1", "jump host"},
		{"--identity-file /nowhere ssh://127.0.0.1:1", "/nowhere"},
	} {
		output, code := run(t, strings.Fields(test.args)...)
		if code != exitUnknown || !strings.Contains(output, test.says) || strings.Contains(output, "secret") {
			t.Errorf("%s: %d, %s, want %q", test.args, code, output, test.says)
		}
	}
	if output, code := run(t, "--help"); code != 0 || output != "" {
		t.Errorf("--help: %d, %s", code, output)
	}
}
