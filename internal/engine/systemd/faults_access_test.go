//go:build linux

package systemd_test

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/knownhosts"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/systemd/layout"
)

// TestLogins: a cluster works the same for all users who may become root on its hosts, and nothing of any of them is
// left.
func TestLogins(t *testing.T) {
	f := newHosts(t)
	const sockets = "ss --listening --tcp --udp --numeric --no-header | awk '{ print $1, $5 }' | sort"
	listened := f.anywhere(sockets)
	f.form(f.spec)
	g := f.group("job", everyHost, "wait")
	f.update(g)
	if listens := f.anywhere(sockets); listens != listened || !strings.Contains(listened, ":22") {
		t.Errorf("there listened\n%s\nand with the cluster listens\n%s", listened, listens)
	}
	f.keyIsForTheRelay(f.sh(0, "cat "+f.dir().Path(layout.KeyFile)))
	asRoot := f
	asRoot.spec.Hosts = map[string]domain.Host{}
	for name, host := range f.spec.Hosts {
		host.Address = strings.Replace(host.Address, "ops@", "root@", 1)
		asRoot.spec.Hosts[name] = host
	}
	asRoot.Engine = asRoot.open(0, f.provider)
	asRoot.startedOnce(g)
	release, err := f.Lock(f.bounded(), "mine", engine.Holder{Who: "ops", Process: os.Getpid()})
	f.must(err)
	if _, err := asRoot.Lock(f.bounded(), "mine", engine.Holder{Who: "root", Process: os.Getpid()}); err == nil ||
		!strings.Contains(err.Error(), "locked by ops") {
		t.Errorf("another login finds the lock: %v", err)
	}
	f.must(release())
	asRoot.form(asRoot.spec)
	asRoot.update(g)
	f.startedOnce(g)

	key, err := exec.Command("ssh-keygen", "-y", "-f", f.bed.KeyFile).Output()
	f.must(err)
	f.sh(2, fmt.Sprintf(
		"useradd -m plain && mkdir /home/plain/.ssh && echo '%s' > /home/plain/.ssh/authorized_keys && chown -R plain /home/plain/.ssh",
		strings.TrimSpace(string(key)),
	))
	plain := f.spec
	plain.Hosts = map[string]domain.Host{"host1": f.spec.Hosts["host1"], "host3": f.spec.Hosts["host3"]}
	host := plain.Hosts["host3"]
	host.Address = strings.Replace(host.Address, "ops@", "plain@", 1)
	plain.Hosts["host3"] = host
	_, problems, err := f.Complete(f.bounded(), plain)
	f.must(err)
	if err := problems.Err(); err == nil || !strings.Contains(err.Error(), `plain ALL=(ALL) NOPASSWD: ALL`) ||
		strings.Contains(err.Error(), "host1") {
		t.Errorf("a user without sudo: %v", err)
	}
	asRoot.finish()
}

// keyIsForTheRelay: the cluster's key gives access to its relay, and to nothing else that users of the host have.
func (f faulty) keyIsForTheRelay(cluster string) {
	f.Helper()
	user, err := os.ReadFile(f.bed.KeyFile)
	f.must(err)
	known, err := knownhosts.New(f.bed.KnownHosts)
	f.must(err)
	asked := map[string]func(*ssh.Client) (io.Closer, error){
		"a connection with a port of the host": func(c *ssh.Client) (io.Closer, error) {
			return c.Dial("tcp", "127.0.0.1:22")
		},
		"a connection with a socket of the host": func(c *ssh.Client) (io.Closer, error) {
			return c.Dial("unix", "/run/dbus/system_bus_socket")
		},
		"a port of the host": func(c *ssh.Client) (io.Closer, error) { return c.Listen("tcp", "127.0.0.1:0") },
		"a terminal": func(c *ssh.Client) (io.Closer, error) {
			session, err := c.NewSession()
			f.must(err)
			return session, session.RequestPty("xterm", 24, 80, nil)
		},
		"a command": func(c *ssh.Client) (io.Closer, error) {
			session, err := c.NewSession()
			f.must(err)
			output, err := session.CombinedOutput("id")
			if !strings.Contains(string(output), "uid=") {
				err = fmt.Errorf("it answers %q, %w", output, cmp.Or(err, errors.New("without an error")))
			}
			return session, err
		},
	}
	for key, gets := range map[string]bool{cluster: false, string(user): true} {
		signer, err := ssh.ParsePrivateKey([]byte(key))
		f.must(err)
		client, err := ssh.Dial("tcp", f.host(1).SSH,
			&ssh.ClientConfig{User: "ops", Auth: []ssh.AuthMethod{ssh.PublicKeys(signer)}, HostKeyCallback: known})
		f.must(err)
		for what, ask := range asked {
			got, err := ask(client)
			if (err == nil) != gets {
				f.Errorf("%s is for who has a user's key; with %s: %v", what,
					map[bool]string{true: "that", false: "the cluster's"}[gets], err)
			}
			if err == nil {
				_ = got.Close() // a session has ended
			}
		}
		f.must(client.Close())
	}
}
