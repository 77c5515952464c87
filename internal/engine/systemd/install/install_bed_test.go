//go:build linux

package install

import (
	"context"
	"strings"
	"sync"
	"testing"

	"github.com/trainyard/terraform-provider-trainyard/internal/acctest"
	"github.com/trainyard/terraform-provider-trainyard/internal/acctest/testbed"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/systemd/facts"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/systemd/layout"
	"github.com/trainyard/terraform-provider-trainyard/internal/sshclient"
)

func TestMain(m *testing.M) { acctest.Main(m, testbed.CloseShared) }

// TestInstallOnHost installs on a real host with sudo: right away, after an interruption, and after a power loss.
func TestInstallOnHost(t *testing.T) {
	bed := testbed.NewHosts(t, testbed.HostOptions{Hosts: 1})
	host := bed.Hosts[0]
	address, err := sshclient.ParseHost("ops@" + host.SSH)
	must(t, err)
	client, err := sshclient.New(address,
		sshclient.Credentials{IdentityFiles: []string{bed.KeyFile}, KnownHosts: []string{bed.KnownHosts}}, 0)
	must(t, err)
	read := func() facts.Facts {
		t.Helper()
		f, err := facts.Read(t.Context(), client)
		must(t, err)
		return f
	}
	has := func(files ...File) {
		t.Helper()
		f := read()
		for _, file := range files {
			if !f.Has(file.Program) {
				t.Errorf("it lacks %+v: there is %+v", file.Program, f.Programs)
			}
		}
		if len(f.Programs) != len(files) {
			t.Errorf("there is %+v", f.Programs)
		}
	}
	before := read()
	script := "#!/bin/sh\necho \"$0 as $(id -un)\"\n"
	program, agent := fileOf(t, "trainyard", script), fileOf(t, "trainyard-agent", noise(16<<20))

	// In the middle, the caller gives up, or the host loses power.
	for name, end := range map[string]func(context.CancelFunc){
		"the caller": func(cancel context.CancelFunc) { cancel() },
		"the power":  func(context.CancelFunc) { must(t, host.Kill()) },
	} {
		ctx, cancel := context.WithCancel(t.Context())
		half := &interrupted{Runner: client, after: 8 << 20, end: func() { end(cancel) }}
		if err := Install(ctx, half, before, agent); err == nil {
			t.Errorf("%s ended without an error", name)
		}
		cancel()
		must(t, host.Start(t.Context()))
		has()
	}
	acctest.Eventually(t, "the host to clean up", func() bool {
		left, err := host.Run(t.Context(), "ls -A "+layout.Programs+" | grep -c upload || true")
		return err == nil && (left == "0" || left == "1") // the power loss leaves its upload behind
	})

	var all sync.WaitGroup
	for range 2 {
		all.Go(func() {
			if err := Install(t.Context(), client, before, program, agent); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	has(program, agent)
	output, err := client.Run(t.Context(), before.AsRoot(program.Path()))
	must(t, err)
	if got, want := strings.TrimSpace(string(output)), program.Path()+" as root"; got != want {
		t.Errorf("it says %q, want %q", got, want)
	}

	// Installed programs survive a power loss.
	must(t, host.Kill())
	must(t, host.Start(t.Context()))
	has(program, agent)

	_, err = host.Run(t.Context(), "mount -t tmpfs -o size=8m none "+layout.Programs)
	must(t, err)
	err = Install(t.Context(), client, before, agent)
	if err == nil || !strings.Contains(err.Error(), "the disk is full, and /var/lib/trainyard/bin needs 17 MiB") {
		t.Errorf("the error is %v", err)
	}
	has()
}
