//go:build linux

package main

import (
	"bytes"
	"context"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// playbooks are Ansible's playbooks, as its users would write them.
//
//go:embed ansible
var playbooks embed.FS

// ansible does the same as Trainyard, with plain systemd units for as many members on the same hosts.
type ansible struct {
	*hostsBench
	program string // the path of ansible-playbook
	dir     string
}

// ansible prepares Ansible for the hosts, and installs it if necessary.
func (h *hostsBench) ansible(ctx context.Context) (_ *ansible, err error) {
	h.say("hosts: installing Ansible, unless it is there")
	install := exec.CommandContext(ctx, "internal/tools/python.sh", "ansible")
	var stderr bytes.Buffer
	install.Stderr = &stderr
	folder, err := install.Output()
	if err != nil {
		return nil, fmt.Errorf("Ansible can't be installed: %w: %s", err, bytes.TrimSpace(stderr.Bytes())) //nolint:staticcheck // a name
	}
	program := filepath.Join(strings.TrimSpace(string(folder)), "ansible-playbook")
	a := &ansible{hostsBench: h, program: program, dir: filepath.Join(h.work, "ansible")}
	files, err := fs.Sub(playbooks, "ansible")
	if err != nil {
		return nil, err
	}
	return a, os.CopyFS(a.dir, files)
}

// inventory writes the hosts, and the members that each host gets.
func (a *ansible) inventory(members int) error {
	hosts := map[string]any{}
	for i, host := range a.bed.Hosts {
		own := []string{}
		for n := i; n < members; n += len(a.bed.Hosts) {
			own = append(own, ansibleMember(n))
		}
		address, number, _ := strings.Cut(host.SSH, ":")
		sshPort, err := strconv.Atoi(number)
		if err != nil {
			return err
		}
		hosts[host.Name] = map[string]any{"ansible_host": address, "ansible_port": sshPort, "members": own}
	}
	text, err := json.Marshal(map[string]any{"all": map[string]any{
		"hosts": hosts,
		"vars": map[string]any{
			"ansible_user": "ops", "ansible_ssh_private_key_file": a.bed.KeyFile, "program": a.member,
			"ansible_ssh_common_args": "-o UserKnownHostsFile=" + a.bed.KnownHosts,
		},
	}})
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(a.dir, "inventory.json"), text, 0o600)
}

// ansibleMember returns the name of a member's unit.
func ansibleMember(n int) string { return fmt.Sprintf("bench-member-%d", n) }

// play runs a playbook, and returns how long it took and its output.
func (a *ansible) play(ctx context.Context, arguments ...string) (time.Duration, string, error) {
	cmd := exec.CommandContext(ctx, a.program, append([]string{"--inventory", "inventory.json"}, arguments...)...)
	cmd.Dir = a.dir
	cmd.Env = append(os.Environ(), "ANSIBLE_CONFIG="+filepath.Join(a.dir, "ansible.cfg"),
		"ANSIBLE_HOME="+filepath.Join(a.dir, "home"), "ANSIBLE_NOCOLOR=1", "LC_ALL=C.UTF-8")
	// A file, since the connection that is kept for the next run also holds the output open.
	output, err := os.CreateTemp(a.dir, "output")
	if err != nil {
		return 0, "", err
	}
	defer output.Close()
	cmd.Stdout, cmd.Stderr = output, output
	begin := time.Now()
	err = cmd.Run()
	took := time.Since(begin)
	printed, readErr := os.ReadFile(output.Name())
	if err != nil {
		err = fmt.Errorf("ansible-playbook %s: %w\n%s", strings.Join(arguments, " "), err, printed)
	}
	return took, string(printed), errors.Join(err, readErr)
}

// measure lets Ansible do all of that once, and measures restarts of its units.
func (a *ansible) measure(ctx context.Context, members int) (s side, err error) {
	s.name = "Ansible"
	if err := a.inventory(members); err != nil {
		return s, err
	}
	for _, play := range []struct {
		into      *sample
		unchanged bool
		arguments []string
	}{
		{&s.apply, false, []string{"start.yml"}},
		{&s.plan, true, []string{"start.yml", "--check"}},
		{&s.destroy, false, []string{"stop.yml"}},
	} {
		if play.into == &s.destroy {
			if s.restart, err = a.restarts(ctx, func(n int) string {
				return ansibleMember(n) + ".service"
			}); err != nil {
				return s, err
			}
		}
		a.say("hosts: %s of %s, by Ansible", strings.Join(play.arguments, " "), count(members))
		took, output, err := a.play(ctx, play.arguments...)
		if err != nil {
			return s, err
		}
		if changes := strings.Count(output, "changed=") - strings.Count(output, "changed=0 "); play.unchanged &&
			changes > 0 {
			return s, fmt.Errorf("Ansible finds changes where there are none:\n%s", output) //nolint:staticcheck // a name
		}
		*play.into = append(*play.into, took)
	}
	return s, nil
}
