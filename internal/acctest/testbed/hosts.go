//go:build linux

package testbed

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/knownhosts"
	"golang.org/x/sync/errgroup"
)

// sshPort is the port of hosts' SSH servers.
const sshPort = 22

// HostOptions describe a bed of hosts.
type HostOptions struct {
	// Hosts is the number of hosts, 1 to 99.
	Hosts int
	// Mounts are folders of this machine that all hosts have at the same path, read-only. File systems mounted below
	// them are not visible.
	Mounts []string
	// CPUs is how many of this machine's processors each host can use, such as 0.5; 0 is no limit. A host still sees
	// all of them, and what Host.Run runs doesn't count. With version 1 of control groups, no unit may have a larger
	// quota than its host.
	CPUs float64
	// Docker makes systemd run Debian's Docker Engine on each host, see Host.Client.
	Docker bool
}

// validate returns an error if the options are invalid.
func (o HostOptions) validate() error {
	if o.Hosts < 1 || o.Hosts > maxNodes {
		return fmt.Errorf("a test bed of %d hosts: it has 1 to %d", o.Hosts, maxNodes)
	}
	if o.CPUs != 0 && o.CPUs < leastCPUs {
		return fmt.Errorf("hosts with %g processors: it is %g or more, or 0 for no bound", o.CPUs, leastCPUs)
	}
	for _, folder := range o.Mounts {
		if !filepath.IsAbs(folder) || filepath.Clean(folder) == "/" {
			return fmt.Errorf("hosts cannot have the folder %q of this machine: name an absolute path below /", folder)
		}
		if info, err := os.Stat(folder); err != nil {
			return fmt.Errorf("hosts cannot have a folder of this machine: make it first: %w", err)
		} else if !info.IsDir() {
			return fmt.Errorf("hosts cannot have %s of this machine, which is no folder: name the one that it is in",
				folder)
		}
	}
	return nil
}

// Hosts is a set of machines with systemd and an SSH server, connected by a network.
type Hosts struct {
	// Hosts are the bed's hosts.
	Hosts []*Host
	// KeyFile is the path of a private key that can log in on every host as root, and as ops, who has sudo without a
	// password.
	KeyFile string
	// KnownHosts is the path of a known_hosts file with the key of each host, for both its forwarded port on this
	// machine and its address in the bed's network.
	KnownHosts string

	options     HostOptions
	system      string // the folder of the hosts' system
	folder      *folder
	network     *network
	hierarchies []hierarchy
	close       func() error
}

// prepare returns the folder of the hosts' system, or an error that says what is missing. The first call installs the
// system, which takes minutes.
func (o HostOptions) prepare(ctx context.Context) (string, error) {
	if err := errors.Join(o.validate(), preflight(os.Geteuid(), hostPackages, lookPath)); err != nil {
		return "", err
	}
	if o.Docker {
		return debian12Docker.install(ctx)
	}
	return debian12.install(ctx)
}

// StartHosts starts a bed of hosts: when it returns, users can log in on all of them. It first removes what earlier,
// killed beds left behind. The caller has to close the bed.
func StartHosts(ctx context.Context, options HostOptions) (*Hosts, error) {
	system, err := options.prepare(ctx)
	if err != nil {
		return nil, err
	}
	if err := sweep(); err != nil {
		return nil, err
	}
	if err := allowWatchers(); err != nil {
		return nil, err
	}
	bed := &Hosts{options: options, system: system}
	bed.close = sync.OnceValue(bed.tearDown)
	if err := bed.start(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("starting the test bed: %w", err), bed.Close())
	}
	return bed, nil
}

// watchers is the limit of inotify instances per user: Linux's default of 128 suffices for one machine, but not for all
// hosts of several beds.
const watchers = 8192

// allowWatchers raises this machine's limit if it is lower.
func allowWatchers() error {
	const file = "/proc/sys/fs/inotify/max_user_instances"
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	if limit, err := strconv.Atoi(strings.TrimSpace(string(text))); err == nil && limit >= watchers {
		return nil
	}
	if err := os.WriteFile(file, []byte(strconv.Itoa(watchers)), 0); err != nil {
		return fmt.Errorf("allowing hosts to watch files: %w", err)
	}
	return nil
}

// start makes all parts of the bed. If it fails, the bed holds the parts made so far.
func (b *Hosts) start(ctx context.Context) (err error) {
	if b.hierarchies, err = hierarchies(); err != nil {
		return err
	}
	if b.folder, err = newFolder(); err != nil {
		return err
	}
	if b.network, err = newNetwork(); err != nil {
		return err
	}
	b.KeyFile = filepath.Join(b.folder.path, "id_ed25519")
	user, err := newKey(b.KeyFile)
	if err != nil {
		return err
	}
	var known strings.Builder
	for number := range b.options.Hosts {
		host, err := newHost(b, number+1)
		if err != nil {
			return err
		}
		b.Hosts = append(b.Hosts, host)
		key, err := host.furnish(user)
		if err != nil {
			return fmt.Errorf("the disk of %s: %w", host.Name, err)
		}
		known.WriteString(knownhosts.Line([]string{host.SSH, host.Address.String()}, key) + "\n")
	}
	b.KnownHosts = filepath.Join(b.folder.path, "known_hosts")
	if err := os.WriteFile(b.KnownHosts, []byte(known.String()), 0o600); err != nil {
		return err
	}
	return b.each(func(host *Host) error { return host.Start(ctx) })
}

// newKey generates a key, writes its private part to a file as ssh-keygen does, and returns the public part.
func newKey(file string) (ssh.PublicKey, error) {
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return nil, err
	}
	block, err := ssh.MarshalPrivateKey(private, "")
	if err != nil {
		return nil, err
	}
	if err := os.WriteFile(file, pem.EncodeToMemory(block), 0o600); err != nil {
		return nil, err
	}
	return ssh.NewPublicKey(public)
}

// Close ends the bed and everything that runs on it, and removes what it left. A second call does nothing.
func (b *Hosts) Close() error { return b.close() }

// tearDown undoes start, even a partial one.
func (b *Hosts) tearDown() error {
	err := b.each((*Host).close)
	if b.network != nil {
		err = errors.Join(err, b.network.close())
	}
	if b.folder != nil {
		err = errors.Join(err, b.folder.remove())
	}
	if err != nil {
		return fmt.Errorf("closing the test bed: %w", err)
	}
	return nil
}

// each calls do for all hosts in parallel, and returns the first error.
func (b *Hosts) each(do func(*Host) error) error {
	var group errgroup.Group
	for _, host := range b.Hosts {
		group.Go(func() error { return do(host) })
	}
	return group.Wait()
}

// Gateway is the address of an extra machine in the bed's network, which DialContext and Listen use.
func (b *Hosts) Gateway() netip.Addr { return gateway }

// DialContext connects from that machine to an IP address and port in the bed's network, such as a server on a host. It
// can serve as a transport's DialContext.
func (b *Hosts) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	return b.network.dial(ctx, network, address)
}

// Listen listens on a TCP port of that machine (0 for any), so that hosts can reach a server of the test at Gateway.
// Their engines accept a registry there without TLS.
func (b *Hosts) Listen(port int) (net.Listener, error) { return b.network.listen(port) }
