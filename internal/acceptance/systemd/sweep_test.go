//go:build linux

package systemd_test

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/trainyard/terraform-provider-trainyard/internal/acceptance"
	"github.com/trainyard/terraform-provider-trainyard/internal/acctest"
)

// What the runs of a sweep leave on the hosts where they were is fetched by one command, which logs in as ssh would.
func TestAccSweepResults(t *testing.T) {
	l := newLab(t, 2, 0)
	w := acctest.NewWorkspace(t, l.provider)
	w.Write("main.tf", required+l.config(l.cluster(l.hosts...), `
resource "trainyard_sweep" "lr" {
  cluster  = trainyard_cluster.lab
  name     = "lr"
  command  = [local.member, "results:{{ .Role }} leaves this"]
  wait_for = "completed"
  runs     = { a = {}, b = {}, c = {} }
  results  = { path = "results", on_destroy = "delete" }
}
`))
	w.Must("apply", "-auto-approve")
	w.ExpectNoChange("once the runs have ended")
	left := map[string]string{"a/lines": "a leaves this\n", "b/lines": "b leaves this\n", "c/lines": "c leaves this\n"}
	l.must(acceptance.Differences(left, l.fetched("lr")))
	w.Must("destroy", "-auto-approve")
}

// fetched returns the files that the program fetches of a sweep.
func (l *lab) fetched(sweep string) map[string]string {
	l.Helper()
	home := l.TempDir()
	l.must(os.Mkdir(filepath.Join(home, ".ssh"), 0o700))
	for name, file := range map[string]string{"id_ed25519": l.bed.KeyFile, "known_hosts": l.bed.KnownHosts} {
		l.must(os.Symlink(file, filepath.Join(home, ".ssh", name)))
	}
	output := filepath.Join(home, "results.tar")
	command := exec.CommandContext(context.WithoutCancel(l.Context()), l.provider,
		"sweep", "results", sweep, "--engine", "systemd", "--endpoint", address(l.hosts[0]), "--cluster", l.name, "--output", output)
	command.Env = append(os.Environ(), "HOME="+home, "SSH_AUTH_SOCK=")
	if said, err := command.CombinedOutput(); err != nil {
		l.Fatalf("%v: %v\n%s", command.Args, err, said)
	}
	content, err := os.ReadFile(output)
	l.must(err)
	files := map[string]string{}
	for reader := tar.NewReader(bytes.NewReader(content)); ; {
		header, err := reader.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		l.must(err)
		text, err := io.ReadAll(reader)
		l.must(err)
		if header.Typeflag == tar.TypeReg {
			files[header.Name] = string(text)
		}
	}
}
