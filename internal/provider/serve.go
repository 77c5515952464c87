package provider

import (
	"context"
	"os"
	"os/signal"
	"runtime/debug"
	"strings"
	"syscall"

	"github.com/hashicorp/terraform-plugin-framework/providerserver"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6/tf6server"

	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
	"github.com/trainyard/terraform-provider-trainyard/internal/provider/packed"
)

// address is the provider's address in the registry.
const address = "registry.terraform.io/trainyard/trainyard"

// gcPercent lets the heap of a provider, which lives for seconds, grow further before it is collected. That makes the
// plan of a group of 1,000 members a fifth faster.
const gcPercent = 400

// Serve serves Terraform until that is done or gone. With keep, it waits for a debugger instead.
func Serve(version string, engines engine.Registry, keep bool) error {
	debug.SetGCPercent(gcPercent)
	quietUnlessAsked()
	if !keep {
		// Terraform ends its providers itself. If one ends earlier, as a CI system signals all processes of a job, what
		// it has just created isn't in the state. Ignoring the signal would make members ignore it, too.
		signal.Notify(make(chan os.Signal, 1), syscall.SIGTERM)
		endWithTerraform()
	}
	var options []tf6server.ServeOpt
	if keep {
		options = append(options, tf6server.WithManagedDebug())
	}
	return tf6server.Serve(address, func() tfprotov6.ProviderServer { return NewServer(version, engines) }, options...)
}

// endWithTerraform ends this process, which would be left behind otherwise, when Terraform is gone.
func endWithTerraform() {
	output := os.Stdout // the library that serves providers replaces it
	go func() {
		if terraformGone(output) {
			os.Exit(1)
		}
	}()
}

// NewServer returns a server for a provider of this version with these engines.
func NewServer(version string, engines engine.Registry) tfprotov6.ProviderServer {
	p := New(version, engines)()
	return printableServer{
		next:  warningServer{packed.NewServer(context.Background(), p, providerserver.NewProtocol6(p)())},
		guide: troubleshooting(version),
	}
}

// quietUnlessAsked turns off the framework's log unless Terraform was asked for a log. It writes several lines for each
// value in a state, which Terraform parses only to drop them: a quarter of the time of a plan of 1,000 members.
func quietUnlessAsked() {
	for _, variable := range os.Environ() {
		if strings.HasPrefix(variable, "TF_LOG") && !strings.HasSuffix(variable, "=") {
			return
		}
	}
	for _, variable := range []string{"TF_LOG_SDK", "TF_LOG_SDK_FRAMEWORK", "TF_LOG_SDK_PROTO"} {
		_ = os.Setenv(variable, "off") // it only fails for malformed names
	}
}
