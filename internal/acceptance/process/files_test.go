//go:build linux

package process_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/knownvalue"
	"github.com/hashicorp/terraform-plugin-testing/plancheck"
	"github.com/hashicorp/terraform-plugin-testing/terraform"
	"github.com/hashicorp/terraform-plugin-testing/tfversion"

	"github.com/trainyard/terraform-provider-trainyard/internal/acceptance"
	"github.com/trainyard/terraform-provider-trainyard/internal/agent/filestore"
	"github.com/trainyard/terraform-provider-trainyard/internal/agent/statedir"
	"github.com/trainyard/terraform-provider-trainyard/internal/filesource"
)

const theCode = "trainyard_files.code"

// codeLab is a lab with a folder of code.
type codeLab struct {
	*lab
	source string
}

func newCodeLab(t *testing.T) codeLab {
	t.Helper()
	return withCode(newLab(t))
}

// withCode adds a folder of code to a lab.
func withCode(l *lab) codeLab {
	l.Helper()
	c := codeLab{l, l.TempDir()}
	c.write("say/version.sh", "echo version one\n")
	c.write("run.sh", ". \"$(dirname \"$0\")/say/version.sh\"\nexec \"$@\"\n")
	c.write(".gitignore", "*.log\n")
	return c
}

// write writes a file in the folder.
func (c codeLab) write(name, content string) {
	c.Helper()
	path := filepath.Join(c.source, name)
	c.must(os.MkdirAll(filepath.Dir(path), 0o700))
	c.must(os.WriteFile(path, []byte(content), 0o600))
}

// code returns the configuration of the files.
func (c codeLab) code() string {
	return fmt.Sprintf(`
resource "trainyard_files" "code" {
  cluster = trainyard_cluster.lab
  name    = "code"
  source  = %q
}
`, c.source)
}

// configure returns a configuration with the cluster, the files, and other parts.
func (c codeLab) configure(parts ...string) string {
	c.Helper()
	return c.config(append([]string{theCluster, c.code()}, parts...)...)
}

// versions are the digests of the existing versions.
func (c codeLab) versions() []string {
	c.Helper()
	digests, err := filestore.Store{Dir: c.files.Path(statedir.Content)}.Versions()
	c.must(err)
	return digests
}

// expectOneVersion returns a check that only the version in the state exists.
func (c codeLab) expectOneVersion() resource.TestCheckFunc {
	return func(s *terraform.State) error {
		digest := s.RootModule().Resources[theCode].Primary.Attributes["digest"]
		if got := c.versions(); !slices.Equal(got, []string{digest}) {
			return fmt.Errorf("there are versions %q, want %s", got, digest)
		}
		return nil
	}
}

// Files that a group or sweep refers to are not destroyed; the error names both.
func TestAccFilesInUse(t *testing.T) {
	c := newCodeLab(t)
	content, err := filesource.Source{Path: c.source}.Read(t.Context())
	c.must(err)
	run := filestore.Store{Dir: c.files.Path(statedir.Content)}.Path(content.Tree.Digest()) + "/run.sh"
	byGroup := group("job",
		fmt.Sprintf("command = [%q, %q, local.member, \"wait\"]\nroles = { worker = { replicas = 1 } }", "/bin/sh",
			run))
	bySweep := fmt.Sprintf(`
resource "trainyard_sweep" "lr" {
  cluster = trainyard_cluster.lab
  name    = "lr"
  command = ["/bin/sh", "-c", "exec /bin/sh $CODE/run.sh"]
  runs    = { one = { CODE = %q } }
}`, filepath.Dir(run))
	c.test(
		resource.TestStep{Config: c.configure()},
		resource.TestStep{Config: c.configure(byGroup)},
		resource.TestStep{Config: c.config(theCluster, byGroup), ExpectError: acceptance.Says(
			`files "code" of cluster "lab" are in use by group job, which refer to ` + filepath.Dir(run),
		)},
		resource.TestStep{Config: c.configure(bySweep)},
		resource.TestStep{
			Config:      c.config(theCluster, bySweep),
			ExpectError: acceptance.Says(`files "code" of cluster "lab" are in use by sweep lr`),
		},
		resource.TestStep{Config: c.configure(), Check: c.expectOneVersion()},
		resource.TestStep{
			Config: c.config(theCluster),
			Check: func(*terraform.State) error {
				if left := c.versions(); len(left) > 0 {
					return fmt.Errorf("there are still %q", left)
				}
				return nil
			},
		},
	)
}

// If the source changes between plan and apply, nothing is copied: Terraform plans again before it applies, and reports
// the difference by itself, with the error that the troubleshooting guide explains.
func TestAccFilesChangedSincePlan(t *testing.T) {
	w, l := newWorkspace(t)
	c := withCode(l)
	l.configure(w, theCluster)
	w.Must("apply", "-auto-approve")
	l.configure(w, theCluster, c.code())
	w.Must("plan", "-out=planned")
	c.write("say/__pycache__/version.pyc", "")
	acceptance.Refuses(w, acceptance.Says("Provider produced inconsistent final plan", ".digest: was"),
		"apply", "planned")
	if got := c.versions(); len(got) > 0 {
		t.Errorf("there are versions %q", got)
	}
	w.Must("apply", "-auto-approve")
	w.ExpectNoChange("after another plan")
}

// Invalid sources fail at plan time, at the attribute.
func TestAccFilesInvalid(t *testing.T) {
	c := newCodeLab(t)
	empty := t.TempDir()
	from := func(attributes string) string {
		return c.config(theCluster,
			fmt.Sprintf("resource \"trainyard_files\" \"code\" {\n  cluster = trainyard_cluster.lab\n  %s\n}\n",
				attributes))
	}
	var steps []resource.TestStep
	for attributes, phrases := range map[string][]string{
		fmt.Sprintf(`name = "code"%ssource = "/no/such/folder"`, "\n"): {
			"source", "/no/such/folder: no such file or directory",
		},
		fmt.Sprintf(`name = "code"%ssource = %q`, "\n", empty): {
			"source", empty, "it has no files",
		},
		fmt.Sprintf(`name = "code"%ssource = %q`, "\n", c.source+"/run.sh"): {
			"source", "run.sh: not a folder or a tar, tar.gz or zip archive",
		},
		fmt.Sprintf(`name = "Code"%ssource = %q`, "\n", c.source): {
			"name", `"Code" is not a DNS label`,
		},
		fmt.Sprintf(`name = "code"%ssource = %q%[1]sexcludes = ["*"]`, "\n", c.source): {"source", "it has no files"},
	} {
		steps = append(steps, resource.TestStep{Config: from(attributes), ExpectError: acceptance.Says(phrases...)})
	}
	c.test(steps...)
}

// An import restores everything.
func TestAccFilesImport(t *testing.T) {
	c := newCodeLab(t)
	c.test(
		resource.TestStep{Config: c.configure()},
		resource.TestStep{
			Config: c.configure(), ResourceName: theCode, ImportState: true, ImportStateId: "lab/code",
			ImportStateVerify: true,
		},
		resource.TestStep{
			Config: c.configure(), ResourceName: theCode, ImportState: true,
			ImportStateKind: resource.ImportBlockWithID, ImportStateId: "lab/code",
		},
		resource.TestStep{
			Config: c.configure(), ResourceName: theCode, ImportState: true, ImportStateId: "lab/other",
			ExpectError: acceptance.Says("Cannot import non-existent remote object"),
		},
	)
}

// Terraform supports import by identity since 1.12.
func TestAccFilesImportByIdentity(t *testing.T) {
	c := newCodeLab(t)
	resource.Test(t, resource.TestCase{
		TerraformVersionChecks:   []tfversion.TerraformVersionCheck{tfversion.SkipBelow(tfversion.Version1_12_0)},
		ProtoV6ProviderFactories: c.providers(),
		Steps: []resource.TestStep{
			{Config: c.configure()},
			{ResourceName: theCode, ImportState: true, ImportStateKind: resource.ImportBlockWithResourceIdentity},
		},
	})
}

// The digest is known at plan even if the cluster or the name is not: what depends on the files can be planned.
func TestAccFilesDigestIsPlanned(t *testing.T) {
	c := newCodeLab(t)
	later := func(source string) string {
		return c.config(theCluster, fmt.Sprintf(`
resource "terraform_data" "name" {
  input = "code"
}

resource "trainyard_files" "code" {
  cluster = trainyard_cluster.lab
  name    = terraform_data.name.output
  source  = %q
}
`, source))
	}
	missing := filepath.Join(c.source, "missing")
	c.test(
		resource.TestStep{
			Config: later(missing), PlanOnly: true, ExpectError: acceptance.Says("Unable to plan files", missing),
		},
		resource.TestStep{
			Config: later(c.source),
			ConfigPlanChecks: acceptance.Planned(
				plancheck.ExpectKnownValue(theCode, acceptance.Attribute("digest"),
					knownvalue.StringRegexp(regexp.MustCompile("^sha256:"))),
				plancheck.ExpectUnknownValue(theCode, acceptance.Attribute("path")),
			),
			Check: c.expectOneVersion(),
		},
	)
}
