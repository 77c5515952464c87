//go:build linux

// Package agent is the program that runs on each host of a cluster: it measures the host, its GPUs and what runs there,
// and answers requests for reports.
package agent

import (
	"cmp"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"

	"golang.org/x/sync/errgroup"

	"github.com/trainyard/terraform-provider-trainyard/internal/agent/metrics"
	"github.com/trainyard/terraform-provider-trainyard/internal/agent/nvml"
	"github.com/trainyard/terraform-provider-trainyard/internal/agent/telemetry"
	"github.com/trainyard/terraform-provider-trainyard/internal/agent/units"
	"github.com/trainyard/terraform-provider-trainyard/internal/bounded"
)

// options are the command-line options.
type options struct {
	// socket is the socket of this host's resident, and disk a directory on the file system that it measures.
	socket, disk string
	// keys is the directory with the keys of the cluster's agents, and peers are the agents to ask.
	keys  string
	peers []telemetry.Peer
	// history is the file in which an agent leaves its measurements to its successor.
	history string
	// units is true if instances may be systemd units.
	units bool
	// metrics is the address for Prometheus.
	metrics string
	query   telemetry.Query
}

// Run runs "agent", the resident that measures continuously, or "agent sample", which writes a report as JSON: from the
// resident behind a socket, from peers, or, without either, from a brief measurement of its own.
func Run(ctx context.Context, args []string, out io.Writer, log *slog.Logger) error {
	sample := len(args) > 0 && args[0] == "sample"
	if sample {
		args = args[1:]
	}
	var o options
	flags := flag.NewFlagSet("agent", flag.ContinueOnError)
	flags.StringVar(&o.socket, "socket", "", "Unix socket of this host's resident agent")
	flags.StringVar(&o.keys, "keys", "", "folder with the keys of the cluster's agents (*.pem)")
	flags.StringVar(&o.disk, "disk", "/", "folder on the file system to measure")
	flags.BoolVar(&o.units, "units", false, "ask systemd for the network traffic of instances that are systemd units")
	flags.StringVar(&o.metrics, "metrics", "", "address to serve Prometheus metrics at, such as 127.0.0.1:9465, or a "+
		"range such as 10.0.0.0/24:9465 for this host's own address in it; empty for none")
	flags.StringVar(&o.history, "history", "", "file in which the agent leaves its measurements to its successor")
	flags.Func("peer", "with sample: agent to ask, as node=address; can be repeated", func(text string) error {
		peer, err := telemetry.ParsePeer(text)
		o.peers = append(o.peers, peer)
		return err
	})
	flags.DurationVar(&o.query.Window, "window", 0, "with sample: time window to report on")
	flags.BoolVar(&o.query.New, "new", false, "with sample: also look for instances that were just started")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() > 0 {
		return fmt.Errorf("agent: unknown argument %q", flags.Arg(0))
	}
	if sample {
		return o.sample(ctx, out)
	}
	return o.stay(ctx, log)
}

// sample writes a report.
func (o options) sample(ctx context.Context, out io.Writer) error {
	var report any
	var err error
	switch {
	case len(o.peers) > 0:
		report, err = telemetry.AskPeers(ctx, o.peers, o.keys, o.query)
	case o.socket != "":
		report, err = telemetry.Ask(ctx, o.socket, o.query)
	default:
		report, err = telemetry.Once(ctx, o.settings(nvml.Source(nvmlSettings())))
	}
	if err != nil {
		return err
	}
	return json.NewEncoder(out).Encode(report)
}

func (o options) settings(gpus telemetry.GPUSource) telemetry.Settings {
	settings := telemetry.Settings{
		Proc: telemetry.HostProc(), Disk: cmp.Or(o.disk, "/"), History: o.history, GPUs: gpus,
	}
	if o.units {
		settings.Units = new(units.Manager).Traffic
	}
	return settings
}

func nvmlSettings() nvml.Settings { return nvml.Settings{Proc: telemetry.HostProc()} }

// host returns the host's name for people.
func host() string {
	name, _ := os.Hostname() // in a container, this is the container's name
	return cmp.Or(os.Getenv(telemetry.HostVariable), name)
}

// stay measures until ctx is done. It serves the socket; with keys, also peers, and with an address, Prometheus.
func (o options) stay(ctx context.Context, log *slog.Logger) error {
	resident, err := telemetry.NewResident(ctx, o.settings(nvml.Keep(ctx, nvmlSettings(), log)),
		os.Getenv(telemetry.NodeVariable), log)
	if err != nil {
		return err
	}
	type door struct {
		what   string
		listen func() (net.Listener, error)
		answer http.Handler
	}
	var doors []door
	if o.socket != "" {
		doors = append(doors,
			door{"socket", func() (net.Listener, error) { return telemetry.Listen(o.socket) }, resident.Handler()})
	}
	if o.keys != "" {
		doors = append(doors, door{"peers", func() (net.Listener, error) {
			return telemetry.ListenToPeers(fmt.Sprintf(":%d", telemetry.PeerPort), o.keys)
		}, resident.Handler()})
	}
	all, ctx := errgroup.WithContext(ctx)
	for _, d := range doors {
		listener, err := d.listen()
		if err != nil {
			return fmt.Errorf("the agent can't listen for requests (%s): %w", d.what, err)
		}
		all.Go(func() error { return bounded.Serve(ctx, listener, d.answer) })
	}
	if o.metrics != "" {
		all.Go(func() error {
			metrics.Serve(ctx, o.metrics, metrics.Handler(resident.Report, host()), log)
			return nil
		})
	}
	all.Go(func() error {
		resident.Run(ctx)
		return nil
	})
	return all.Wait()
}
