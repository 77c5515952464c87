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

func TestKeep(t *testing.T) {
	testbed.SkipIfShort(t)
	ctx, interrupt := context.WithCancel(t.Context())
	r, w := io.Pipe()
	kept := make(chan error, 1)
	go func() {
		err := keep(ctx, w, testbed.Options{Nodes: 2, Managers: 1, TLS: true})
		w.CloseWithError(err)
		kept <- err
	}()
	var output strings.Builder
	for lines := bufio.NewScanner(r); lines.Scan(); {
		output.WriteString(lines.Text() + "\n")
		if strings.HasPrefix(lines.Text(), "Ctrl-C") {
			break
		}
	}
	_, socket, _ := strings.Cut(output.String(), "DOCKER_HOST=unix://")
	socket, _, _ = strings.Cut(socket, "\n")
	if _, err := os.Stat(socket); err != nil {
		t.Errorf("it names no socket: %v", err)
	}
	interrupt()
	if err := <-kept; err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Dir(socket)); !os.IsNotExist(err) {
		t.Errorf("the bed is left: %v", err)
	}
	for _, want := range []string{"node1  manager  10.200.0.1", "node2  worker   10.200.0.2", "DOCKER_HOST=tcp://127.0.0.1:", "DOCKER_CERT_PATH=/"} {
		if !strings.Contains(output.String(), want) {
			t.Errorf("it does not say %q:\n%s", want, &output)
		}
	}
}
