//go:build linux

package main

import (
	"bufio"
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/trainyard/terraform-provider-trainyard/internal/acctest/testbed"
)

// kept runs a bed, passes its complete output to look, and ends the bed.
func kept(t *testing.T, keep func(context.Context, io.Writer) error, look func(output string)) {
	t.Helper()
	testbed.SkipIfShort(t)
	ctx, interrupt := context.WithCancel(t.Context())
	defer interrupt()
	r, w := io.Pipe()
	ended := make(chan error, 1)
	go func() {
		err := keep(ctx, w)
		w.CloseWithError(err)
		ended <- err
	}()
	var output strings.Builder
	for lines := bufio.NewScanner(r); lines.Scan(); {
		output.WriteString(lines.Text() + "\n")
		if strings.HasPrefix(lines.Text(), "Ctrl-C") {
			break
		}
	}
	look(output.String())
	interrupt()
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
}

// after returns the part of a text between a beginning and an end.
func after(text, beginning, end string) string {
	_, text, _ = strings.Cut(text, beginning)
	text, _, _ = strings.Cut(text, end)
	return text
}

func TestKeep(t *testing.T) {
	options := testbed.Options{Nodes: 2, Managers: 1, TLS: true}
	var socket string
	kept(t, func(ctx context.Context, out io.Writer) error { return keep(ctx, out, options) }, func(output string) {
		socket = after(output, "DOCKER_HOST=unix://", "\n")
		if _, err := os.Stat(socket); err != nil {
			t.Errorf("it names no socket: %v", err)
		}
		for _, want := range []string{
			"node1  manager  10.200.0.1", "node2  worker   10.200.0.2", "DOCKER_HOST=tcp://127.0.0.1:",
			"DOCKER_CERT_PATH=/",
		} {
			if !strings.Contains(output, want) {
				t.Errorf("it does not say %q:\n%s", want, output)
			}
		}
	})
	if _, err := os.Stat(filepath.Dir(socket)); !os.IsNotExist(err) {
		t.Errorf("the bed is left: %v", err)
	}
}

func TestKeepHosts(t *testing.T) {
	options := testbed.HostOptions{Hosts: 2}
	var key string
	kept(t, func(ctx context.Context, out io.Writer) error { return keepHosts(ctx, out, options) },
		func(output string) {
			key = after(output, " -i ", " ")
			if _, err := os.Stat(key); err != nil {
				t.Errorf("it names no key: %v", err)
			}
			for _, want := range []string{"host1  10.200.0.1\n  ssh -p ", "host2  10.200.0.2", " root@127.0.0.1\n"} {
				if !strings.Contains(output, want) {
					t.Errorf("it does not say %q:\n%s", want, output)
				}
			}
		})
	if _, err := os.Stat(filepath.Dir(key)); !os.IsNotExist(err) {
		t.Errorf("the bed is left: %v", err)
	}
}
