package systemd

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/systemd/facts"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/systemd/relay"
	"github.com/trainyard/terraform-provider-trainyard/internal/sshclient"
)

// reach is how this process connects to hosts, with one client per address.
type reach struct {
	cluster string
	program Program
	// peers are the hosts as the controller logs in to them; nil in other processes.
	peers *peers

	// store is the last known store host; nil if none is known.
	store atomic.Pointer[host]

	credentials sshclient.Credentials
	log         *slog.Logger
	mu          sync.Mutex
	hosts       map[string]*host
}

// host is a host at an address.
type host struct {
	*relay.Client
	ssh *sshclient.Client // nil for this very machine
	// live is the host without cached reads, if this one has them; otherwise nil.
	live *host
}

// now returns the host without cached reads.
func (h *host) now() *host {
	if h.live != nil {
		return h.live
	}
	return h
}

// looks are hosts that are read once each, for the plans of a cluster.
type looks struct {
	cluster string
	mu      sync.Mutex
	hosts   map[*host]*host
}

// at returns a host with reads cached at its first request; without looks, the host itself.
func (l *looks) at(h *host, err error) (*host, error) {
	if l == nil || h == nil || err != nil {
		return h, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.hosts[h] == nil {
		l.hosts[h] = &host{Client: h.Looking(l.cluster), ssh: h.ssh, live: h}
	}
	return l.hosts[h], nil
}

func newReach(cluster string, settings engine.Settings, program Program) (*reach, error) {
	program.Binaries = settings.AgentBinaries
	r := &reach{
		cluster: cluster, program: program, hosts: map[string]*host{}, credentials: settings.SSH, log: settings.Log,
	}
	if settings.Controller {
		r.peers = &peers{dir: filepath.Join(settings.StateDir, cluster)}
		_, err := r.introduced()
		return r, err
	}
	return r, nil
}

// named returns the client of a host of the cluster.
func (r *reach) named(name string, of domain.Host) (*host, error) {
	if r.peers == nil {
		return r.client(of.Address)
	}
	introduced, err := r.introduced()
	if err != nil {
		return nil, err
	}
	if name == introduced.Self {
		return r.at(localAddress, func() (*host, error) {
			return &host{Client: relay.NewClient("host "+name, r.program.Local)}, nil
		})
	}
	peer, known := introduced.Peers[name]
	if !known {
		return nil, fmt.Errorf("host %s %w: its address is not known here", name, engine.ErrUnreachable)
	}
	return r.client("ssh://" + peer.Login)
}

// client returns the client of the host at an address.
func (r *reach) client(address string) (*host, error) {
	return r.at(address, func() (*host, error) {
		login, err := loginOf(address)
		if err != nil {
			return nil, err
		}
		to, err := sshclient.ParseHost(login)
		if err != nil {
			return nil, err
		}
		client, err := sshclient.New(to, r.credentials, 0)
		if err != nil {
			return nil, err
		}
		dial := greeted(func(ctx context.Context) (net.Conn, error) { return r.dial(ctx, client) })
		update := func(ctx context.Context) error { return r.update(ctx, client) }
		return &host{Client: relay.NewClient("the host at "+address, installing(dial, update)), ssh: client}, nil
	})
}

func (r *reach) at(address string, open func() (*host, error)) (*host, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if known := r.hosts[address]; known != nil {
		return known, nil
	}
	opened, err := open()
	if err == nil {
		opened.Log = r.log
		r.hosts[address] = opened
	}
	return opened, err
}

// errOther is returned for a host of the cluster that has other versions of our programs.
var errOther = errors.New("another version of Trainyard is installed")

// installPatience bounds how long installing our programs may take, also over a slow line.
const installPatience = 10 * time.Minute

// errInstall is for a host on which an installation hangs.
var errInstall = sshclient.Failed(sshclient.ErrTimeout, "installing this version of Trainyard was not finished within "+
	"%s: check the network to the host, its load and its disk", installPatience)

// installing returns a dial function that updates a host of the cluster with other versions of our programs, in bounded
// time: callers share an attempt to connect, which none of them can end.
func installing(
	dial func(context.Context) (net.Conn, error), update func(context.Context) error,
) func(context.Context) (net.Conn, error) {
	return func(ctx context.Context) (net.Conn, error) {
		conn, err := dial(ctx)
		if !errors.Is(err, errOther) {
			return conn, err
		}
		limited, cancel := context.WithTimeoutCause(ctx, installPatience, errInstall)
		defer cancel()
		if err := update(limited); err != nil {
			return nil, err
		}
		return dial(ctx)
	}
}

// update installs our programs on a host. What runs there keeps running.
func (r *reach) update(ctx context.Context, client facts.Runner) error {
	found, err := facts.Read(ctx, client)
	if err != nil {
		return unnamed(err)
	}
	return r.program.install(ctx, nameless{client}, found)
}

// nameless runs commands on a host with errors that don't name it, as those of its [relay.Client] do.
type nameless struct{ facts.Runner }

// RunInput runs a command.
func (n nameless) RunInput(ctx context.Context, command string, stdin io.Reader) ([]byte, error) {
	stdout, err := n.Runner.RunInput(ctx, command, stdin)
	return stdout, unnamed(err)
}

// dial runs the relay on a host.
func (r *reach) dial(ctx context.Context, client *sshclient.Client) (net.Conn, error) {
	command, err := r.relayCommand()
	if err != nil {
		return nil, err
	}
	conn, err := client.Exec(ctx, command)
	if err != nil {
		return nil, err
	}
	return conn, nil
}

// unnamed returns an error of an SSH connection without the host, which the errors of its [relay.Client] name.
func unnamed(err error) error { return sshclient.At("", err) }

// greetingPatience bounds how long a host may take to start the relay: it may be busy, and sudo may wait for a
// directory service.
const greetingPatience = 2 * time.Minute

// errNoGreeting is for a host whose SSH server answers, and nothing behind it.
var errNoGreeting = sshclient.Failed(sshclient.ErrTimeout, "its SSH server answers, but nothing started there within "+
	"%s: check its load, its disk, and sudo", greetingPatience)

// greeted returns a dial function that returns once the relay has answered. The wait is bounded, as callers share an
// attempt to connect, which none of them can end.
func greeted(dial func(context.Context) (net.Conn, error)) func(context.Context) (net.Conn, error) {
	return func(ctx context.Context) (net.Conn, error) {
		conn, err := dial(ctx)
		if err != nil {
			return nil, unnamed(err)
		}
		limited, cancel := context.WithTimeoutCause(ctx, greetingPatience, errNoGreeting)
		defer cancel()
		stop := context.AfterFunc(limited, func() { _ = conn.Close() })
		reader := bufio.NewReader(conn)
		greeting, err := reader.ReadString('\n')
		inTime := stop()
		switch {
		case ctx.Err() != nil:
			err = ctx.Err()
		case !inTime:
			err = context.Cause(limited)
		case greeting == relay.Greeting:
			return &buffered{conn, reader}, nil
		case greeting == relay.Absent:
			err = relay.ErrOutside
		case greeting == relay.Other:
			err = errOther
		case errors.Is(err, io.EOF):
			err = fmt.Errorf("its relay exited at once, after printing %q", greeting)
		case err != nil:
			err = unnamed(err)
		default:
			err = fmt.Errorf("expected the relay, got %.100q; does its shell print that at login?", greeting)
		}
		_ = conn.Close()
		return nil, err
	}
}

// buffered is a connection from which something was read ahead.
type buffered struct {
	net.Conn
	reader *bufio.Reader
}

// Read returns what was read ahead first.
func (b *buffered) Read(p []byte) (int, error) {
	n, err := b.reader.Read(p)
	return n, unnamed(err)
}
