//go:build linux

package program_test

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/trainyard/terraform-provider-trainyard/internal/acctest"
	"github.com/trainyard/terraform-provider-trainyard/internal/agent/statedir"
	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/process"
)

func TestMain(m *testing.M) { acctest.Main(m) }

// mallory is the ID of another user.
const mallory = 65534

// TestUntrustedStateDirectory runs each command as root on a cluster that another user created in a world-writable
// folder. TestAccUntrustedStateDirectory does the same with Terraform.
func TestUntrustedStateDirectory(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can make folders of other users")
	}
	for name, args := range map[string][]string{
		"supervise":         {"supervise", "--state-dir"},
		"controller":        {"controller", "--state-dir"},
		"top":               {"top", "--once", "--endpoint"},
		"autoscale explain": {"autoscale", "explain", "--json", "--endpoint"},
	} {
		t.Run(name, func(t *testing.T) {
			root, evidence := t.TempDir(), filepath.Join(t.TempDir(), "owned")
			must(t, os.Chmod(root, 0o777|os.ModeSticky))
			d := statedir.Dir{Root: root, Cluster: "lab"}
			e, err := process.Open(domain.ClusterRef{Name: "lab", Endpoint: root}, engine.Settings{}, process.Program{})
			must(t, err)
			_, err = engine.Put(t.Context(), e,
				domain.ClusterDocument{Spec: domain.Cluster{Name: "lab", Engine: process.Name}})
			must(t, err)
			must(t, statedir.Write(d.Document(statedir.Specs, "job-worker-0"), domain.MemberSpec{
				Cluster: "lab", Group: "job", Role: "worker", Name: "job-worker-0", Run: 1,
				Command: []string{"/bin/sh", "-c", ": >" + evidence}, WorkingDir: "/",
			}, statedir.Durable))
			must(t, filepath.WalkDir(d.Path(), func(path string, _ fs.DirEntry, err error) error {
				return errors.Join(err, os.Lchown(path, mallory, mallory))
			}))
			before := content(t, root)

			var complaint bytes.Buffer
			command := exec.CommandContext(t.Context(), acctest.Build(t, acctest.Provider),
				append(args, root, "--cluster", "lab")...)
			command.Stderr = &complaint
			must(t, command.Start())
			ended := make(chan error, 1)
			go func() { ended <- command.Wait() }()
			acctest.Eventually(t, "the command to end, or to run the planted program", func() bool {
				select {
				case err = <-ended:
					return true
				default:
					_, missing := os.Stat(evidence)
					if missing == nil {
						must(t, command.Process.Signal(syscall.SIGTERM))
						err = <-ended
					}
					return missing == nil
				}
			})
			if err == nil || !strings.Contains(complaint.String(), d.Path()+" belongs to user nobody (65534)") {
				t.Errorf("it ended with %v: %s", err, complaint.String())
			}
			if after := content(t, root); after != before {
				t.Errorf("before:\n%safter:\n%s", before, after)
			}
			if _, err := os.Stat(evidence); err == nil {
				t.Error("the other user's member ran")
			}
			for process, running := range acctest.Processes(t, root) {
				t.Errorf("there is %s", running)
				_ = syscall.Kill(process, syscall.SIGKILL)
			}
		})
	}
}

// content returns the names, owners, modes and sizes of everything in a folder.
func content(t *testing.T, root string) string {
	t.Helper()
	listed, err := exec.CommandContext(t.Context(), "find", root, "-printf", `%P %U %m %s\n`).Output()
	must(t, err)
	return string(listed)
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
