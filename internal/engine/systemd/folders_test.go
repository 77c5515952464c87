package systemd

import (
	"archive/tar"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
)

// TestReadFolderOfRetiredHost: a folder on a host that has left the cluster is missing. On one that is down, it may not
// be.
func TestReadFolderOfRetiredHost(t *testing.T) {
	r := newRack(t, map[string]error{"gpu3": engine.ErrUnreachable})
	read := func(host string) error {
		return r.ReadFolder(t.Context(), domain.KeptFolder{Member: "lr-1", Host: host, Path: "/results"},
			func(*tar.Header, io.Reader) error { return nil })
	}
	if err := read("retired"); !errors.Is(err, engine.ErrNotFound) ||
		!strings.Contains(err.Error(), "host retired is no longer in the cluster") {
		t.Errorf("of a host that has left: %v", err)
	}
	if err := read("gpu3"); err == nil || errors.Is(err, engine.ErrNotFound) {
		t.Errorf("of a host that is down: %v", err)
	}
}
