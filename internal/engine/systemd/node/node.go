//go:build linux

// Package node is the host's side of the engine "systemd". It answers the calls of package relay, for each cluster
// through the engine "process" on a state directory of the host; the supervisor there is a systemd unit, and runs
// members as units.
package node

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"sync"
	"time"

	"github.com/trainyard/terraform-provider-trainyard/internal/agent/statedir"
	"github.com/trainyard/terraform-provider-trainyard/internal/agent/supervisor"
	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/process"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/systemd/layout"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/systemd/relay"
)

// Node answers calls to this host.
type Node struct {
	// program is the file that this process runs, installed on this host.
	program string

	watches watches

	mu sync.Mutex
	// engines are those of clusters, which cache what they read, by everything that they depend on.
	engines map[engineKey]*process.Engine
}

// engineKey is what an engine of a cluster is opened for.
type engineKey struct {
	cluster, host, agent, version string
	elsewhere                     bool
}

// New returns the node of this host.
func New() *Node {
	return &Node{program: supervisor.Executable(), engines: map[engineKey]*process.Engine{}}
}

// Serve answers over standard input and output until they end, or ctx is done.
func Serve(ctx context.Context) error {
	n := New()
	_ = markUsed(layout.Programs, n.program, time.Now()) // a host that is read-only can still be read
	if _, err := fmt.Fprint(os.Stdout, relay.Greeting); err != nil {
		return err
	}
	return relay.Serve(ctx, relay.Stdio{}, n.Handler())
}

// Dial returns a connection to this host's node within this process.
func Dial(ctx context.Context) (net.Conn, error) {
	ours, theirs := net.Pipe()
	go func() { _ = relay.Serve(context.WithoutCancel(ctx), theirs, New().Handler()) }() // it ends with the connection
	return ours, nil
}

// part is a cluster's part on this host.
type part struct {
	*process.Engine
	node *Node
	dir  statedir.Dir
	// outside is set if this host is not in the cluster.
	outside bool
}

// part returns the part of a cluster, which this host may not be in.
func (n *Node) part(cluster string) (part, error) {
	var problems domain.Problems
	domain.CheckName(&problems, domain.Path{"name"}, "cluster", cluster)
	if err := problems.Err(); err != nil {
		return part{}, err // the name becomes part of a path
	}
	dir, err := statedir.Open(layout.Clusters, cluster)
	if err != nil {
		return part{}, err
	}
	p := part{node: n, dir: dir}
	ledger, err := p.ledger()
	if p.outside = errors.Is(err, relay.ErrOutside); err != nil && !p.outside {
		return part{}, err
	}
	p.Engine = n.engine(dir, engineKey{cluster, ledger.Host, p.agent(), p.version(), ledger.Host != ledger.Store})
	return p, nil
}

// joined returns the part of a cluster that this host is in; otherwise the error is [relay.ErrOutside].
func (n *Node) joined(cluster string) (part, error) {
	p, err := n.part(cluster)
	if err == nil && p.outside {
		err = relay.ErrOutside
	}
	return p, err
}

// engine returns the engine of a cluster.
func (n *Node) engine(dir statedir.Dir, key engineKey) *process.Engine {
	n.mu.Lock()
	defer n.mu.Unlock()
	if known := n.engines[key]; known != nil {
		return known
	}
	e := process.OpenAt(dir, process.Program{File: n.program, Agent: key.agent, Version: key.version}, process.Site{
		Supervise:   func(ctx context.Context) error { return n.supervise(ctx, key) },
		Controller:  []string{"--engine", layout.Engine},
		Host:        key.host,
		Elsewhere:   key.elsewhere,
		Units:       true,
		Environment: map[string]string{"PATH": defaultPath, "LANG": "C.UTF-8"},
		Containers:  true,
	})
	n.engines[key] = e
	return e
}

// agent is the file of the agent; empty if none was installed.
func (p part) agent() string {
	if _, err := os.Stat(p.dir.Path(agentLink)); err != nil {
		return ""
	}
	return p.dir.Path(agentLink)
}

const defaultPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// answer registers a handler for a call about a cluster that this host is in.
func answer[Q, A any](
	n *Node, mux *http.ServeMux, call relay.Call[Q, A], do func(ctx context.Context, p part, question Q) (A, error),
) {
	answerAs(n.joined, mux, call, do)
}

// answerAs registers a handler for a call about the part of a cluster that in returns.
func answerAs[Q, A any](
	in func(cluster string) (part, error), mux *http.ServeMux, call relay.Call[Q, A],
	do func(ctx context.Context, p part, question Q) (A, error),
) {
	call.Answer(mux, func(ctx context.Context, cluster string, question Q) (A, error) {
		p, err := in(cluster)
		if err != nil {
			return *new(A), err
		}
		return do(ctx, p, question)
	})
}

// act registers a handler for a call that returns nothing.
func act[Q any](
	n *Node, mux *http.ServeMux, call relay.Call[Q, relay.None], do func(ctx context.Context, p part, question Q) error,
) {
	answer(n, mux, call, func(ctx context.Context, p part, question Q) (relay.None, error) {
		return relay.None{}, do(ctx, p, question)
	})
}
