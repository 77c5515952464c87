//go:build linux

package acceptance

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/hashicorp/go-version"

	"github.com/trainyard/terraform-provider-trainyard/internal/acctest"
)

// Features of newer Terraform versions, as values for required_version.
const (
	EphemeralValues     = ">= 1.10"
	WriteOnlyAttributes = ">= 1.11"
)

// Requires skips a test if the version of Terraform or OpenTofu doesn't match.
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

// requiredVersion matches the Terraform versions that a configuration requires.
var requiredVersion = regexp.MustCompile(`(?m)^ *required_version *= *"(.*?)"`)

// RequiresAsIn skips a test if the configuration in a folder requires another version.
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
		if match := requiredVersion.FindSubmatch(content); match != nil {
			Requires(t, string(match[1]))
		}
	}
}

// OnOpenTofu reports whether tests run on OpenTofu.
func OnOpenTofu(t testing.TB) bool {
	t.Helper()
	output, err := exec.CommandContext(t.Context(), acctest.Terraform(t), "version").Output()
	if err != nil {
		t.Fatal(err)
	}
	return bytes.HasPrefix(output, []byte("OpenTofu"))
}

func cliVersion(t testing.TB) *version.Version {
	t.Helper()
	output, err := exec.CommandContext(t.Context(), acctest.Terraform(t), "version", "-json").Output()
	if err != nil {
		t.Fatal(err)
	}
	var info struct {
		Version string `json:"terraform_version"` // also used by OpenTofu
	}
	if err := json.Unmarshal(output, &info); err != nil {
		t.Fatal(err)
	}
	cli, err := version.NewVersion(info.Version)
	if err != nil {
		t.Fatal(err)
	}
	return cli
}
