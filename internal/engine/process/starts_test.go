//go:build linux

package process

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/trainyard/terraform-provider-trainyard/internal/agent/statedir"
	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
)

// TestStartsOnTheirWay: a start request is never missed, though it is renamed all the time, as it is when a supervisor
// claims it.
func TestStartsOnTheirWay(t *testing.T) {
	e, err := Open(domain.ClusterRef{Name: "lab"}, engine.Settings{StateDir: t.TempDir()}, Program{})
	if err != nil {
		t.Fatal(err)
	}
	start := statedir.Start{Group: "job", Run: 1}
	asked, claimed := e.dir.Document(statedir.Starts, start.Name()),
		e.dir.Document(statedir.Starts, start.Name()+".claimed")
	if err := os.MkdirAll(filepath.Dir(asked), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := statedir.Write(asked, start, statedir.Volatile); err != nil {
		t.Fatal(err)
	}
	stop, stopped := make(chan struct{}), make(chan error)
	go func() {
		for from, to := asked, claimed; ; from, to = to, from {
			select {
			case <-stop:
				stopped <- nil
				return
			default:
			}
			if err := os.Rename(from, to); err != nil {
				stopped <- err
				return
			}
		}
	}()
	for range 1000 {
		starts, err := e.starts()
		if err != nil || len(starts) != 1 || starts[0].Name() != start.Name() {
			t.Fatalf("the requests are %v (%v)", starts, err)
		}
	}
	close(stop)
	if err := <-stopped; err != nil {
		t.Fatal(err)
	}
}
