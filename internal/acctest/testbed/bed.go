//go:build linux

package testbed

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/docker/docker/client"
	"golang.org/x/sync/errgroup"
)

// maxNodes is the maximum number of nodes of a bed. A machine's capacity limits it, not the subnet's size.
const maxNodes = 99

// Options describe a bed. Beds with equal options are equal.
type Options struct {
	// Nodes is the number of nodes, 1 to 99.
	Nodes int
	// Managers is how many of the nodes, starting with the first, are managers of the bed's Swarm; the others are
	// worker nodes. With 0, no Swarm is formed.
	Managers int
	// TLS makes the engines listen for TLS as well: see Node.TLSHost and Bed.Certificates.
	TLS bool
	// Heartbeat is the interval of the Swarm's heartbeats; a node without one for three intervals is down. The default
	// is 3 s: a busy machine may silence a node for longer than three intervals of 1 s, and Docker's default of 5 s
	// makes tests wait. Use Steady if no test takes a node down.
	Heartbeat time.Duration
	// Engine is the nodes' Docker Engine, a key of Engines. By default EngineVariable selects it.
	Engine string
	// Mixed gives the nodes different Engines, in turn: this machine's with Docker's own image store, 26.1 with
	// containerd's, and 26.1 with Docker's.
	Mixed bool
	// Rootless makes the engines listen only on Node.Socket, as rootless Docker does, and not on /run/docker.sock.
	Rootless bool
}

// validate returns an error if the options are invalid.
func (o Options) validate() error {
	if o.Nodes < 1 || o.Nodes > maxNodes {
		return fmt.Errorf("a test bed of %d nodes: it has 1 to %d", o.Nodes, maxNodes)
	}
	if o.Managers < 0 || o.Managers > o.Nodes {
		return fmt.Errorf("a test bed of %d nodes with %d managers: it has 0 to %[1]d", o.Nodes, o.Managers)
	}
	return nil
}

// Bed is a set of machines with Docker Engines, connected by a network.
type Bed struct {
	// Nodes are the bed's nodes, the managers first.
	Nodes []*Node
	// Certificates is a folder with a client's ca.pem, cert.pem and key.pem, as in DOCKER_CERT_PATH. It is empty
	// without Options.TLS.
	Certificates string

	options   Options
	folder    *folder
	network   *network
	authority *authority // nil without TLS
	engine    Engine     // the nodes' Engine, unless mixed
	debian    string     // Debian 13's folder; "" if no node runs its Engine
	proxies   atomic.Int32
	close     func() error
}

// Start starts a bed: when it returns, all engines answer and all nodes of the Swarm are ready. It first removes what
// earlier, killed beds left behind. The caller has to close the bed.
func Start(ctx context.Context, options Options) (*Bed, error) {
	if err := errors.Join(options.validate(), preflight(os.Geteuid(), enginePackages, lookPath)); err != nil {
		return nil, err
	}
	if err := sweep(); err != nil {
		return nil, err
	}
	bed := &Bed{options: options}
	bed.close = sync.OnceValue(bed.tearDown)
	var err error
	if bed.engine, bed.debian, err = options.install(ctx); err == nil {
		err = bed.start(ctx)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("starting the test bed: %w", err), bed.Close())
	}
	return bed, nil
}

// install returns the nodes' Engine, unless they are mixed, and Debian 13's folder if a node needs it. The first call
// installs Debian 13, which takes minutes.
func (o Options) install(ctx context.Context) (engine Engine, system string, err error) {
	if engine, err = o.chosen(); err != nil {
		return engine, "", err
	}
	for number := range o.Nodes {
		if o.engineOf(number+1, engine).Debian13 {
			system, err = debian13.install(ctx)
			return engine, system, err
		}
	}
	return engine, "", nil
}

// start makes all parts of the bed. If it fails, the bed holds the parts made so far.
func (b *Bed) start(ctx context.Context) (err error) {
	if b.folder, err = newFolder(); err != nil {
		return err
	}
	if err := os.Chmod(b.folder.path, 0o755); err != nil { //nolint:gosec // tests may open the sockets as other users
		return err
	}
	if b.network, err = newNetwork(); err != nil {
		return err
	}
	if b.options.TLS {
		if b.authority, err = newAuthority(); err != nil {
			return err
		}
		b.Certificates = filepath.Join(b.folder.path, "tls")
		if err := b.authority.issueClient(b.Certificates); err != nil {
			return err
		}
	}
	for number := range b.options.Nodes {
		node, err := newNode(b, number+1)
		if err != nil {
			return err
		}
		b.Nodes = append(b.Nodes, node)
	}
	err = b.each(func(node *Node) error {
		if err := node.boot(); err != nil {
			return err
		}
		if b.options.TLS {
			var err error
			if node.forward, err = b.network.forward(netip.AddrPortFrom(node.Address, tlsPort)); err != nil {
				return err
			}
		}
		return node.start(ctx)
	})
	if err != nil || b.options.Managers == 0 {
		return err
	}
	return b.formSwarm(ctx)
}

// Close ends the bed and everything that runs on it, and removes what it left. A second call does nothing.
func (b *Bed) Close() error { return b.close() }

// tearDown undoes start, even a partial one.
func (b *Bed) tearDown() error {
	err := b.each((*Node).close)
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

// each calls do for all nodes in parallel, and returns the first error.
func (b *Bed) each(do func(*Node) error) error {
	var group errgroup.Group
	for _, node := range b.Nodes {
		group.Go(func() error { return do(node) })
	}
	return group.Wait()
}

// Load loads an image, given as a docker-archive, onto all nodes in parallel, and checks that they have it under this
// reference.
func (b *Bed) Load(ctx context.Context, ref string, archive []byte) error {
	return b.each(func(node *Node) error {
		if err := load(ctx, node.client, ref, archive); err != nil {
			return fmt.Errorf("loading %s onto %s: %w", ref, node.Name, err)
		}
		return nil
	})
}

// load loads an image into an engine.
func load(ctx context.Context, engine *client.Client, ref string, archive []byte) error {
	response, err := engine.ImageLoad(ctx, bytes.NewReader(archive), client.ImageLoadWithQuiet(true))
	if err != nil {
		return err
	}
	defer response.Body.Close()
	// The status is 200 even if loading fails later on.
	messages := json.NewDecoder(response.Body)
	for {
		var message struct{ Error string }
		switch err := messages.Decode(&message); {
		case errors.Is(err, io.EOF):
			_, err := engine.ImageInspect(ctx, ref)
			return err
		case err != nil:
			return err
		case message.Error != "":
			return errors.New(message.Error)
		}
	}
}

// Gateway is the address of an extra machine in the bed's network, which DialContext and Listen use.
func (b *Bed) Gateway() netip.Addr { return gateway }

// DialContext connects from that machine to an IP address and port in the bed's network, such as a port that a
// container publishes. It can serve as a transport's DialContext.
func (b *Bed) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	return b.network.dial(ctx, network, address)
}

// Listen listens on a TCP port of that machine (0 for any), so that nodes can reach a server of the test at Gateway.
// The engines accept a registry there without TLS.
func (b *Bed) Listen(port int) (net.Listener, error) {
	return b.network.listen(port)
}
