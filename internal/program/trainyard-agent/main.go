//go:build linux

// Command trainyard-agent is the part of the provider that runs on hosts, without the parts for Terraform and for
// people: two thirds of its size, and built with cgo, so that it can call NVIDIA's driver.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/trainyard/terraform-provider-trainyard/internal/printable"
	"github.com/trainyard/terraform-provider-trainyard/internal/program"
)

// version is set when a release is built.
var version = "dev"

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "trainyard-agent:", printable.Text(err.Error()))
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) == 0 {
		return errors.New("missing command: this program is started by Trainyard, or by hand as agent")
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	return program.Run(ctx, version, args)
}
