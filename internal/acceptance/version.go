//go:build linux

package acceptance

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/hashicorp/go-version"

	"github.com/trainyard/terraform-provider-trainyard/internal/acctest"
)

// What newer versions of Terraform brought, as in required_version.
const (
	EphemeralValues     = ">= 1.10"
	WriteOnlyAttributes = ">= 1.11"
)

// Requires skips a test where the CLI has another version, Terraform's or OpenTofu's.
func Requires(t testing.TB, versions string) {
	t.Helper()
	constraint, err := version.NewConstraint(versions)
	if err != nil {
		t.Fatal(err)
	}
	if cli := cliVersion(t); !constraint.Check(cli) {
		t.Skipf("this takes version %s of Terraform, and here is %s", versions, cli)
	}
}

// requiredVersion is what a configuration says of the versions of Terraform that it works with.
var requiredVersion = regexp.MustCompile(`(?m)^ *required_version *= *"(.*?)"`)

// RequiresAsIn skips a test where the CLI has a version with which the configuration in a folder says it does not work.
func RequiresAsIn(t testing.TB, folder string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(folder, "*.tf"))
	if err != nil || len(files) == 0 {
		t.Fatalf("there is no configuration in %s: %v", folder, err)
	}
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if said := requiredVersion.FindSubmatch(content); said != nil {
			Requires(t, string(said[1]))
		}
	}
}

func cliVersion(t testing.TB) *version.Version {
	t.Helper()
	output, err := exec.CommandContext(t.Context(), acctest.Terraform(t), "version", "-json").Output()
	if err != nil {
		t.Fatal(err)
	}
	var said struct {
		Version string `json:"terraform_version"` // by OpenTofu, too
	}
	if err := json.Unmarshal(output, &said); err != nil {
		t.Fatal(err)
	}
	cli, err := version.NewVersion(said.Version)
	if err != nil {
		t.Fatal(err)
	}
	return cli
}
