//go:build linux

package systemd_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/trainyard/terraform-provider-trainyard/internal/acctest"
	"github.com/trainyard/terraform-provider-trainyard/internal/agent/libc"
	"github.com/trainyard/terraform-provider-trainyard/internal/agent/libc/libctest"
	"github.com/trainyard/terraform-provider-trainyard/internal/agent/telemetry"
)

// TestAgentThatHostsCantStart: hosts with a C library older than the agent needs run it without GPUs, and plans say so
// for those that have a driver; members run as usual.
func TestAgentThatHostsCantStart(t *testing.T) {
	f := newHosts(t)
	provider := filepath.Join(t.TempDir(), "provider")
	must(t, os.Link(f.provider, provider))
	libctest.Program(t, filepath.Join(filepath.Dir(provider), telemetry.AgentName), loaderOf(t), "GLIBC_2.2.5",
		"GLIBC_2.99")
	f.Engine = f.open(0, provider)
	f.sh(1, "printf '#!/bin/sh\n' >/usr/local/bin/nvidia-smi && chmod 755 /usr/local/bin/nvidia-smi")

	_, problems, err := f.Complete(f.bounded(), f.spec)
	must(t, err)
	name := f.host(1).Name
	if len(problems) != 1 || !problems[0].Warning || problems[0].Path.String() != `hosts["`+name+`"].address` ||
		!strings.Contains(problems[0].Detail, "has glibc 2.") ||
		!strings.Contains(problems[0].Detail, telemetry.AgentName+" needs glibc 2.99 or newer") {
		t.Errorf("the problems are %v, want a warning of host %s alone", problems, name)
	}
	f.form(f.spec) // it waits for the agents
	g := f.group("job", everyHost, "wait")
	f.update(g)
	f.running("job", len(everyHost))
	usage, err := f.Usage(f.bounded(), 0)
	must(t, err)
	for _, h := range f.bed.Hosts {
		if usage.Hosts[h.Name].TotalMemoryMiB == 0 {
			t.Errorf("host %s is not measured: %+v", h.Name, usage.Hosts[h.Name])
		}
	}
	f.finish()
}

// loaderOf returns the loader of this machine.
func loaderOf(t *testing.T) string {
	t.Helper()
	need, err := libc.Of(acctest.BuildAgent(t))
	must(t, err)
	return need.Loader
}
