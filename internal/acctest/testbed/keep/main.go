//go:build linux

// Command keep runs a test bed for manual use, until it is interrupted.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"syscall"

	"github.com/trainyard/terraform-provider-trainyard/internal/acctest/testbed"
)

func main() {
	var options testbed.Options
	var hosts testbed.HostOptions
	flag.IntVar(&options.Nodes, "nodes", 3, "number of nodes")
	flag.IntVar(&options.Managers, "managers", 1, "number of nodes that are managers of the Swarm; 0 forms no Swarm")
	flag.BoolVar(&options.TLS, "tls", false, "also listen with TLS")
	flag.BoolVar(&options.Mixed, "mixed", false, "run different Engines and image stores on the nodes")
	flag.IntVar(&hosts.Hosts, "hosts", 0, "number of bare hosts, with systemd and an SSH server, instead of nodes")
	flag.BoolVar(&hosts.Docker, "docker", false, "run a Docker Engine on each host")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	var err error
	if hosts.Hosts > 0 {
		err = keepHosts(ctx, os.Stdout, hosts)
	} else {
		err = keep(ctx, os.Stdout, options)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// keep runs a bed until the context ends, and prints how to use it.
func keep(ctx context.Context, out io.Writer, options testbed.Options) error {
	bed, err := testbed.Start(ctx, options)
	if err != nil {
		return err
	}
	err = describe(out, bed, options)
	if err == nil {
		<-ctx.Done()
	}
	return errors.Join(err, bed.Close())
}

// describe prints how to use the bed.
func describe(out io.Writer, bed *testbed.Bed, options testbed.Options) error {
	for i, node := range bed.Nodes {
		role := "engine"
		switch {
		case i < options.Managers:
			role = "manager"
		case options.Managers > 0:
			role = "worker"
		}
		if _, err := fmt.Fprintf(out, "%s  %-8s %s\n  export DOCKER_HOST=%s\n", node.Name, role, node.Address,
			node.Host()); err != nil {
			return err
		}
		if options.TLS {
			if _, err := fmt.Fprintf(out, "  export DOCKER_HOST=%s DOCKER_TLS_VERIFY=1 DOCKER_CERT_PATH=%s\n",
				node.TLSHost(), bed.Certificates); err != nil {
				return err
			}
		}
	}
	_, err := fmt.Fprint(out, `
Export one of these in another terminal: docker, docker stack and the provider then speak to that node.
The nodes reach each other by their addresses, and nothing else. Images have to be loaded: docker save … | docker load.
Services need --endpoint-mode dnsrr where the kernel has no IPVS.

Ctrl-C ends all of it.
`)
	return err
}

// keepHosts is keep for hosts.
func keepHosts(ctx context.Context, out io.Writer, options testbed.HostOptions) error {
	bed, err := testbed.StartHosts(ctx, options)
	if err != nil {
		return err
	}
	err = describeHosts(out, bed)
	if err == nil {
		<-ctx.Done()
	}
	return errors.Join(err, bed.Close())
}

// describeHosts prints how to use the hosts.
func describeHosts(out io.Writer, bed *testbed.Hosts) error {
	for _, host := range bed.Hosts {
		address, port, err := net.SplitHostPort(host.SSH)
		if err != nil {
			return err
		}
		if _, err := fmt.Fprintf(out, "%s  %s\n  ssh -p %s -i %s -o UserKnownHostsFile=%s root@%s\n",
			host.Name, host.Address, port, bed.KeyFile, bed.KnownHosts, address); err != nil {
			return err
		}
	}
	_, err := fmt.Fprint(out, `
The user ops is let in, too, and has sudo. The hosts reach each other by their names and addresses, and nothing else.
reboot boots a host again, poweroff ends it.

Ctrl-C ends all of it.
`)
	return err
}
