//go:build linux

package suite

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/plancheck"
	"github.com/hashicorp/terraform-plugin-testing/terraform"
	"github.com/hashicorp/terraform-plugin-testing/tfjsonpath"

	"github.com/trainyard/terraform-provider-trainyard/internal/acceptance"
	"github.com/trainyard/terraform-provider-trainyard/internal/acctest"
	"github.com/trainyard/terraform-provider-trainyard/internal/agent/statedir"
	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
)

const theCode = "trainyard_files.code"

// code is a lab with a folder of code.
type code struct {
	*Lab
	source string
}

func newCode(l *Lab) code {
	l.Helper()
	c := code{l, l.TempDir()}
	c.write("say/version.sh", "echo version one\n")
	c.write("run.sh", ". \"$(dirname \"$0\")/say/version.sh\"\nexec \"$@\"\n")
	c.write(".gitignore", "*.log\n")
	return c
}

// write writes a file in the folder.
func (c code) write(name, content string) {
	c.Helper()
	path := filepath.Join(c.source, name)
	c.must(os.MkdirAll(filepath.Dir(path), 0o700))
	c.must(os.WriteFile(path, []byte(content), 0o600))
}

// configure returns a configuration with the cluster, the files, and other parts.
func (c code) configure(parts ...string) string {
	c.Helper()
	return c.config(append([]string{fmt.Sprintf(`
resource "trainyard_files" "code" {
  cluster = trainyard_cluster.lab
  name    = "code"
  source  = %q
}
`, c.source)}, parts...)...)
}

// runner is a group that runs from the files, in their folder.
var runner = group("job", `
  command     = ["/bin/sh", "${trainyard_files.code.path}/run.sh", local.member, "wait"]
  working_dir = trainyard_files.code.path
  roles       = { worker = { replicas = 2 } }`)

// versions are the digests of the versions on the host.
func (c code) versions() []string {
	c.Helper()
	store, err := engine.Files(c.Open())
	c.must(err)
	found, err := store.FindFiles(context.WithoutCancel(c.Context()))
	c.must(err)
	return slices.Sorted(maps.Keys(found[c.Host].Versions))
}

// expectOneVersion returns a check that only the version in the state exists.
func (c code) expectOneVersion() resource.TestCheckFunc {
	return func(s *terraform.State) error {
		digest := s.RootModule().Resources[theCode].Primary.Attributes["digest"]
		if got := c.versions(); !slices.Equal(got, []string{digest}) {
			return fmt.Errorf("there are versions %q, want %s", got, digest)
		}
		return nil
	}
}

// says returns a check of the last line that a member printed.
func (c code) says(member, want string) resource.TestCheckFunc {
	return func(*terraform.State) error {
		acctest.Eventually(c, member+" says "+want,
			func() bool { return slices.Equal(c.lastLines(member, 1), []string{want}) })
		return nil
	}
}

// path returns the path of the version on the host.
func (c code) path() string {
	c.Helper()
	store, err := engine.Files(c.Open())
	c.must(err)
	return store.FilesPath(c.versions()[0])
}

// showsBefore checks that the plan shows this as the current value of an attribute.
type showsBefore struct {
	path  tfjsonpath.Path
	found string
}

// CheckPlan implements [plancheck.PlanCheck].
func (s showsBefore) CheckPlan(_ context.Context, req plancheck.CheckPlanRequest, resp *plancheck.CheckPlanResponse) {
	for _, change := range req.Plan.ResourceChanges {
		if change.Address != theCode {
			continue
		}
		got, err := tfjsonpath.Traverse(change.Change.Before, s.path)
		if err == nil && fmt.Sprint(got) != s.found {
			err = fmt.Errorf("the plan shows %v, want %s", got, s.found)
		}
		resp.Error = err
	}
}

// A group runs from files, and is updated together with them in one apply, which removes the previous version.
func files(l *Lab) {
	c := newCode(l)
	c.test(
		resource.TestStep{
			Config: c.configure(runner),
			Check: resource.ComposeTestCheckFunc(
				c.changes("+job-worker-0", "+job-worker-1"), c.says("job-worker-0", "version one"),
				c.expectOneVersion(),
				resource.TestCheckResourceAttr(theCode, "id", c.id("code")),
				resource.TestCheckResourceAttrPair(theCode, "hosts."+c.Host, theCode, "digest"),
			),
		},
		resource.TestStep{
			PreConfig: func() { c.write("train.log", "ignored\n") },
			Config:    c.configure(runner), PlanOnly: true,
		},
		resource.TestStep{
			PreConfig: func() { c.write("say/version.sh", "echo version two\n") },
			Config:    c.configure(runner),
			ConfigPlanChecks: acceptance.Planned(
				plancheck.ExpectResourceAction(theCode, plancheck.ResourceActionUpdate),
				plancheck.ExpectResourceAction(acceptance.TheJob, plancheck.ResourceActionUpdate),
			),
			Check: resource.ComposeTestCheckFunc(
				c.changes("~job-worker-0", "~job-worker-1"), c.says("job-worker-1", "version two"),
				c.expectOneVersion(),
			),
		},
	)
}

// A file that is altered or missing on a host is drift, and repaired; files added by members are not.
func filesDrift(l *Lab) {
	c := newCode(l)
	drift := func(shown string, change func()) resource.TestStep {
		return resource.TestStep{
			PreConfig: change,
			Config:    c.configure(runner),
			ConfigPlanChecks: acceptance.Planned(
				plancheck.ExpectResourceAction(theCode, plancheck.ResourceActionUpdate),
				plancheck.ExpectResourceAction(acceptance.TheJob, plancheck.ResourceActionNoop),
				plancheck.ExpectUnknownValue(theCode, acceptance.Attribute("hosts")),
				showsBefore{acceptance.Attribute("hosts"), shown},
			),
			Check: resource.ComposeTestCheckFunc(c.changes(), c.expectOneVersion(),
				resource.TestCheckResourceAttrPair(theCode, "hosts."+c.Host, theCode, "digest")),
		}
	}
	c.test(
		resource.TestStep{Config: c.configure(runner), Check: c.changes("+job-worker-0", "+job-worker-1")},
		resource.TestStep{
			PreConfig: func() {
				c.shell("cd %s && chmod 700 . && touch added.pyc", c.path())
			},
			Config: c.configure(runner), PlanOnly: true,
		},
		drift("map["+c.Host+":altered: run.sh]", func() {
			c.shell("cd %s && chmod 700 run.sh && echo echo other >run.sh", c.path())
		}),
		drift("map["+c.Host+":missing: say/version.sh]", func() {
			c.shell("cd %s && chmod 700 say && rm -r say", c.path())
		}),
		drift("map[]", func() { c.shell("cd %s && chmod -R u+w . && rm -r *", c.Dir.Path(statedir.Content)) }),
		resource.TestStep{
			// What is definitely gone is recreated.
			PreConfig: func() {
				c.must(engine.Delete[domain.FilesDocument](c.Context(), c.Open(), "code"))
			},
			Config: c.configure(runner),
			ConfigPlanChecks: acceptance.Planned(plancheck.ExpectResourceAction(theCode,
				plancheck.ResourceActionCreate)),
			Check: resource.ComposeTestCheckFunc(c.changes(), c.expectOneVersion()),
		},
	)
}
