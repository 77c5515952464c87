//go:build linux

package process_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// shells are those that run the scripts: sh on GitLab, bash on GitHub.
var shells = []string{"sh", "bash"}

// runScript runs a script in a shell with this environment and these programs in place of others, and returns its exit
// code.
func runScript(t *testing.T, shell, script, home string, env []string, programs map[string]string,
) (code int, output string) {
	t.Helper()
	for name, program := range programs {
		content := []byte("#!/bin/sh\n" + program)
		err := os.WriteFile(filepath.Join(home, name), content, 0o700) //nolint:gosec // it is to be run
		if err != nil {
			t.Fatal(err)
		}
	}
	command := exec.Command(shell, "-c", script)
	command.Env = append([]string{"HOME=" + home, "PATH=" + home + ":" + os.Getenv("PATH")}, env...)
	text, err := command.CombinedOutput()
	if command.ProcessState == nil {
		t.Fatal(err)
	}
	return command.ProcessState.ExitCode(), string(text)
}

// runCredentials runs credentials.sh and a command that exits with 3.
func runCredentials(t *testing.T, home string, env []string, programs map[string]string) (code int, output string) {
	t.Helper()
	return runScript(t, "sh", read(t, "examples/ci/scripts/credentials.sh")+"exit 3\n", home, env, programs)
}

// agent is a process in place of an SSH agent.
type agent struct{ *exec.Cmd }

func startAgent(t *testing.T) agent {
	t.Helper()
	a := agent{exec.Command("sleep", "600")}
	if err := a.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { a.ended() })
	return a
}

// ended reports whether the agent was asked to end. It ends in any case.
func (a agent) ended() bool {
	_ = a.Process.Kill()
	_ = a.Wait()
	status, _ := a.ProcessState.Sys().(syscall.WaitStatus)
	return status.Signal() == syscall.SIGTERM
}

// gone is a PID that no process can have.
const gone = 1<<22 + 1

// The scripts end the SSH agent that they started and no other, and agents don't change the exit code.
func TestCIAgents(t *testing.T) {
	inherited, started := startAgent(t), startAgent(t)
	for _, pid := range []int{inherited.Process.Pid, gone} {
		code, output := runCredentials(t, t.TempDir(), []string{fmt.Sprintf("SSH_AGENT_PID=%d", pid)}, nil)
		if code != 3 || output != "" {
			t.Errorf("with the inherited agent %d, exit code %d, not 3\n%s", pid, code, output)
		}
	}
	for _, pid := range []int{started.Process.Pid, gone} {
		code, output := runCredentials(t, t.TempDir(), []string{"TRAINYARD_SSH_KEY=key"}, map[string]string{
			"ssh-agent": fmt.Sprintf("echo 'SSH_AGENT_PID=%[1]d; export SSH_AGENT_PID; echo Agent pid %[1]d;'", pid),
			"ssh-add":   "cat >/dev/null",
		})
		if code != 3 || output != "" {
			t.Errorf("with the started agent %d, exit code %d, not 3\n%s", pid, code, output)
		}
	}
	env := []string{"TRAINYARD_SSH_KEY=key", fmt.Sprintf("SSH_AGENT_PID=%d", inherited.Process.Pid)}
	if code, output := runCredentials(t, t.TempDir(), env, map[string]string{"ssh-agent": "exit 9"}); code != 9 {
		t.Errorf("if no agent starts, exit code %d, not that of ssh-agent\n%s", code, output)
	}
	if !started.ended() {
		t.Error("the scripts leave the agent that they started")
	}
	if inherited.ended() {
		t.Error("the scripts end an agent that they did not start")
	}
}

// Lines of TRAINYARD_ENV become variables, without blank lines and comments. One that is malformed is an error with its
// number, which doesn't show the line: it may have a secret.
func TestCIVariables(t *testing.T) {
	script := read(t, "examples/ci/scripts/credentials.sh") + "echo \"$A $_B2\"\n"
	run := func(shell, lines string, env ...string) (code int, output string) {
		return runScript(t, shell, script, t.TempDir(), append(env, "TRAINYARD_ENV="+lines), nil)
	}
	for _, shell := range shells {
		lines := "# a comment\nA=b=c\n\n_B2= $HOME `id` "
		for _, lines := range []string{lines, strings.ReplaceAll(lines, "\n", "\r\n")} {
			code, output := run(shell, lines)
			if code != 0 || output != "b=c  $HOME `id` \n" {
				t.Errorf("%s, %q: exit code %d\n%s", shell, lines, code, output)
			}
		}
		for _, line := range []string{"DB-PASSWORD=hunter2", "hunter2", "2A=hunter2", "=hunter2", " A=hunter2"} {
			code, output := run(shell, "A=b\n\n"+line, "GITHUB_ACTIONS=true")
			want := "TRAINYARD_ENV: line 3 must be NAME=value; NAME has letters, digits and _, no digit first\n"
			if code != 1 || output != want {
				t.Errorf("%s, %s: exit code %d, and %q, want %q", shell, line, code, output, want)
			}
		}
	}
}

// GitHub masks the values of variables, except for short ones such as 1, which would be masked in all of the log. It
// reads %25, %0A and %0D in a command as other characters.
func TestCIMasks(t *testing.T) {
	env := []string{
		"GITHUB_ACTIONS=true",
		"TRAINYARD_ENV=A=12345%25\nB=%0A%%%%%\nC=\nD=plain \\n\nE=1\nF=seven77\nG=eight888",
	}
	const want = "::add-mask::12345%2525\n::add-mask::%250A%25%25%25%25%25\n::add-mask::plain \\n\n" +
		"::add-mask::eight888\n"
	for _, shell := range shells {
		script := read(t, "examples/ci/scripts/credentials.sh")
		_, output := runScript(t, shell, script, t.TempDir(), env, nil)
		masks, _, _ := strings.Cut(output, "::stop-commands::")
		if masks != want {
			t.Errorf("%s masks %q, want %q", shell, masks, want)
		}
	}
}

// GitHub runs commands again once a script has ended, however it did. Each script has its own secret to allow that.
func TestCIRunsCommandsAgain(t *testing.T) {
	outputs := map[string]bool{}
	for _, shell := range shells {
		for _, end := range []string{"exit 3", "false", "kill -TERM $$"} {
			script := read(t, "examples/ci/scripts/credentials.sh") + "echo ::error::\n" + end + "\n"
			_, output := runScript(t, shell, script, t.TempDir(), []string{"GITHUB_ACTIONS=true"}, nil)
			notRun(t, output, "::error::\n")
			if outputs[output] {
				t.Errorf("twice the same secret:\n%s", output)
			}
			outputs[output] = true
		}
	}
}

// A signal ends the script even while it runs no Terraform.
func TestCICancelled(t *testing.T) {
	for _, shell := range shells {
		script := read(t, "examples/ci/scripts/credentials.sh") + "kill -TERM $$\nexit 3\n"
		if code, output := runScript(t, shell, script, t.TempDir(), nil, nil); code != 143 || output != "" {
			t.Errorf("%s: exit code %d, not 143\n%s", shell, code, output)
		}
	}
}

// Runs on a machine that keeps its known_hosts add only what it lacks.
func TestCIKnownHosts(t *testing.T) {
	home := t.TempDir()
	file := filepath.Join(home, ".ssh/known_hosts")
	run := func(hosts, want string) {
		t.Helper()
		code, output := runCredentials(t, home, []string{"TRAINYARD_KNOWN_HOSTS=" + hosts}, nil)
		if got, err := os.ReadFile(file); err != nil || string(got) != want || code != 3 || output != "" {
			t.Errorf("with %q, known_hosts has %q, want %q: %v; exit code %d\n%s", hosts, got, want, err, code, output)
		}
	}
	run("gpu1 ssh-rsa AAAA", "gpu1 ssh-rsa AAAA\n")
	run("gpu1 ssh-rsa AAAA", "gpu1 ssh-rsa AAAA\n")
	run("gpu1 ssh-rsa AAA\n\n-e .*\ngpu1 ssh-rsa AAAA", "gpu1 ssh-rsa AAAA\ngpu1 ssh-rsa AAA\n\n-e .*\n")
}

// The SSH key and host keys are texts, or as GitLab's variables of type "File" paths of files with these texts.
func TestCIFiles(t *testing.T) {
	const key, hosts = "-----BEGIN KEY-----\nkey\n-----END KEY-----", "gpu1 ssh-ed25519 AAAA\ngpu2 ssh-ed25519 BBBB"
	for name, ending := range map[string]string{"texts": "", "files": "", "files that end with a newline": "\n"} {
		t.Run(name, func(t *testing.T) {
			home := t.TempDir()
			env := []string{"TRAINYARD_SSH_KEY=" + key, "TRAINYARD_KNOWN_HOSTS=" + hosts}
			if name != "texts" {
				keyFile, hostsFile := filepath.Join(home, "KEY"), filepath.Join(home, "HOSTS")
				err := errors.Join(os.WriteFile(keyFile, []byte(key+ending), 0o600),
					os.WriteFile(hostsFile, []byte(hosts+ending), 0o600))
				if err != nil {
					t.Fatal(err)
				}
				env = []string{"TRAINYARD_SSH_KEY=" + keyFile, "TRAINYARD_KNOWN_HOSTS=" + hostsFile}
			}
			code, output := runCredentials(t, home, env, map[string]string{
				"ssh-agent": fmt.Sprintf("echo SSH_AGENT_PID=%d", gone), "ssh-add": "cat >~/added",
			})
			for file, want := range map[string]string{"added": key + "\n", ".ssh/known_hosts": hosts + "\n"} {
				got, err := os.ReadFile(filepath.Join(home, file))
				if err != nil || string(got) != want {
					t.Errorf("%s has %q, want %q: %v", file, got, want, err)
				}
			}
			if code != 3 || output != "" {
				t.Errorf("exit code %d, not 3\n%s", code, output)
			}
		})
	}
}
