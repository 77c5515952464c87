//go:build linux

package systemd_test

import (
	"archive/zip"
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/docker/docker/api/types/image"

	"github.com/trainyard/terraform-provider-trainyard/internal/acceptance"
	"github.com/trainyard/terraform-provider-trainyard/internal/acctest"
	"github.com/trainyard/terraform-provider-trainyard/internal/acctest/testbed"
)

// Images from a registry that requires a login are pulled with the provider's credentials: for members that an apply
// starts, and for runs that the controller starts. The credentials are on the hosts that pull, and in the store,
// readable by root only; they are in no state, plan or log, and are removed with those who need them.
func TestAccPrivateImages(t *testing.T) {
	acceptance.Test(t)
	bed := dockerBed(t)
	l := openLab(t, bed, acctest.Build(t, acctest.Provider), 1, 0)
	listener, err := bed.Listen(0)
	l.must(err)
	const first, second = "the-first-password", "the-second-password"
	shop := acctest.ServeRegistry(t, listener, first)
	trainer, board := shop.Push(t, acctest.Member, "private/trainer:1"), shop.Push(t, acctest.Member, "private/board:1")
	l.dropsImages(trainer, board)
	w := acctest.NewWorkspace(t, l.provider)
	w.Env("DOCKER_CONFIG", w.Dir)
	write := func(registries string, parts ...string) {
		provider := strings.Replace(l.config(append([]string{l.cluster(l.hosts...)}, parts...)...),
			"provider \"trainyard\" {", "provider \"trainyard\" {\n  "+registries, 1)
		w.Write("main.tf", required+provider)
	}
	given := func(password string) string {
		return fmt.Sprintf(`docker = { registries = { %q = { username = %q, password = %q } } }`, shop.Host,
			acctest.RegistryUser, password)
	}
	group := func(image string) string {
		return job(fmt.Sprintf(
			"image = %q\n  args = [\"print:hello\", \"wait\"]\n  roles = { worker = { replicas = 2, restart = { condition = \"never\" }, placement = { strategy = \"one_per_host\" } } }",
			image,
		))
	}
	sweep := fmt.Sprintf(`
resource "trainyard_sweep" "lr" {
  cluster   = trainyard_cluster.lab
  name      = "lr"
  image     = %q
  args      = ["print:done"]
  wait_for  = "completed"
  container = { pull_policy = "always" }
  runs      = { a = {}, b = {}, c = {} }
}`, board)

	write("", group(trainer))
	acceptance.Refuses(w, regexp.MustCompile(`(?s)wants credentials, there are none.*docker\.registries`), "apply",
		"-auto-approve")
	write(given("wrong"), group(trainer))
	acceptance.Refuses(w, regexp.MustCompile(`(?s)credentials that Terraform brought.*give\s+the\s+provider\s+others`),
		"apply", "-auto-approve")

	write(given(first), group(trainer))
	l.hides(w, first, "plan", "-out="+savedPlan)
	l.hides(w, first, "apply", savedPlan)
	w.ExpectNoChange("with the image there")
	l.expectLogins("600 root ", "600 root registries.job.item")

	// Another password: it is used by what is applied from now on, here by runs that the controller starts.
	shop.SetPassword(second)
	write(given(second), group(trainer), sweep)
	l.hides(w, second, "apply", "-auto-approve")
	w.ExpectNoChange("once the runs have ended")
	// A change of a group also updates its credentials; those of docker login work as well.
	encoded := "b3BzOnRoZS1zZWNvbmQtcGFzc3dvcmQ=" // ops:the-second-password
	w.Write("config.json", fmt.Sprintf(`{"auths": {%q: {"auth": %q}}}`, shop.Host, encoded))
	write("", group(board), sweep)
	l.hides(w, second, "apply", "-auto-approve")
	w.ExpectNoChange("with the other image")
	l.hides(w, second, "destroy", "-auto-approve", "-target=trainyard_group.job", "-target=trainyard_sweep.lr")
	l.expectLogins()
	w.Must("destroy", "-auto-approve")
}

// dropsImages removes images from the hosts of the lab at the end of the test.
func (l *lab) dropsImages(names ...string) {
	l.Cleanup(func() {
		for _, host := range l.hosts {
			for _, name := range names {
				_, _ = host.Client().ImageRemove(context.WithoutCancel(l.Context()), name,
					image.RemoveOptions{Force: true}) // it may never have been there
			}
		}
	})
}

// expectLogins waits until each host of the lab has exactly these credential files, readable by root only.
func (l *lab) expectLogins(want ...string) {
	l.Helper()
	for _, host := range l.hosts {
		var found []string
		l.Cleanup(func() {
			if l.Failed() {
				l.Logf("%s had the logins %q", host.Name, found)
			}
		})
		acctest.Eventually(l, fmt.Sprintf("%s to have the logins %q", host.Name, want), func() bool {
			found = nil
			for file := range strings.Lines(l.on(host,
				`find %s -type f '(' -name 'registries.*' -o -name '.registry.*' ')' -printf '%%m %%u %%f\n'`,
				l.dir().Path())) {
				file, _, _ = strings.Cut(strings.TrimSpace(file), ".registry.") // otherwise it is an image's
				found = append(found, file)
			}
			slices.Sort(found)
			return slices.Equal(found, want)
		})
	}
}

// savedPlan is the file of saved plans.
const savedPlan = "tfplan"

// hides runs Terraform with all logging, expects success, and fails if the secret appears in the log, the output, the
// state, a saved plan, or the hosts' journals.
func (l *lab) hides(w *acctest.Workspace, secret string, args ...string) {
	l.Helper()
	logs := filepath.Join(w.Dir, "trace.log")
	l.must(os.RemoveAll(logs))
	printed, err := w.Command(context.Background(), []string{"TF_LOG=TRACE", "TF_LOG_PATH=" + logs},
		args...).CombinedOutput()
	if err != nil {
		l.Fatalf("%s: %v\n%s", args, err, printed)
	}
	seen := map[string][]byte{"output": printed}
	for _, name := range []string{"trace.log", "terraform.tfstate", "terraform.tfstate.backup"} {
		if content, err := os.ReadFile(filepath.Join(w.Dir, name)); err == nil {
			seen[name] = content
		}
	}
	if !bytes.Contains(seen["trace.log"], []byte("host call")) {
		l.Errorf("%s: there is no trace of the provider in the log", args)
	}
	if slices.Contains(args, "-out="+savedPlan) {
		plan, err := zip.OpenReader(filepath.Join(w.Dir, savedPlan))
		l.must(err)
		defer plan.Close()
		for _, file := range plan.File {
			if strings.HasPrefix(file.Name, "tfconfig/") {
				continue // the configuration itself
			}
			part, err := file.Open()
			l.must(err)
			seen["plan's "+file.Name], err = io.ReadAll(part)
			l.must(err)
			l.must(part.Close())
		}
	}
	for _, host := range l.hosts {
		seen["journal of "+host.Name] = []byte(l.journal(host))
	}
	for where, content := range seen {
		if bytes.Contains(content, []byte(secret)) {
			l.Errorf("%s: the secret is to be seen in the %s", args, where)
		}
	}
}

func (l *lab) journal(host *testbed.Host) string {
	return l.on(host, "journalctl --no-pager --boot; ps -ef; cat %s/*.log 2>/dev/null; :", l.dir().Path("logs"))
}
