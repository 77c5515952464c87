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

// One command, which logs in as ssh would, downloads what runs of a sweep, or members of a group, left on the hosts
// where they ran.
func TestAccResults(t *testing.T) {
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
resource "trainyard_group" "job" {
  cluster = trainyard_cluster.lab
  name    = "job"
  command = ["/bin/sh", "-c", "mkdir -p out/deep && echo $TRAINYARD_MEMBER > out/deep/whose && echo more > more && exec sleep 1000"]
  roles   = { worker = { replicas = 3 } }
}
`))
	w.Must("apply", "-auto-approve")
	w.ExpectNoChange("once the runs have ended")
	left := map[string]string{"a/lines": "a leaves this\n", "b/lines": "b leaves this\n", "c/lines": "c leaves this\n"}
	l.must(acceptance.Differences(left, l.fetched("sweep", "results", "lr")))
	for _, member := range []string{"job-worker-0", "job-worker-2"} {
		var all map[string]string
		acctest.Eventually(t, "all to be written", func() bool {
			all = l.fetched("results", member)
			return all[member+"/more"] == "more\n" // written last
		})
		whose := map[string]string{member + "/out/deep/whose": member + "\n", member + "/more": "more\n"}
		l.must(acceptance.Differences(whose, all))
		l.must(acceptance.Differences(map[string]string{member + "/whose": member + "\n"},
			l.fetched("results", member, "--path", "out/deep")))
	}
	w.Must("destroy", "-auto-approve")
	for _, host := range l.hosts { // what members wrote to their own folders stays
		l.on(host, "rm -rf %s", l.dir().Path())
	}
}

// fetched returns the files that a command of the program downloads.
func (l *lab) fetched(fetch ...string) map[string]string {
	l.Helper()
	output := filepath.Join(l.TempDir(), "results.tar")
	l.runProgram(append(fetch, "--output", output)...)
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

// runProgram returns a command's output about the cluster, when it logs in as ssh would.
func (l *lab) runProgram(args ...string) string {
	l.Helper()
	args = append(args, "--engine", "systemd", "--endpoint", address(l.hosts[0]), "--cluster", l.name)
	command := exec.CommandContext(context.WithoutCancel(l.Context()), l.provider, args...)
	command.Env = append(os.Environ(), "HOME="+l.bed.Home(l), "SSH_AUTH_SOCK=")
	output, err := command.CombinedOutput()
	if err != nil {
		l.Fatalf("%v: %v\n%s", command.Args, err, output)
	}
	return string(output)
}
