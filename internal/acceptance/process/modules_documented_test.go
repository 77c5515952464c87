//go:build linux

package process_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/hashicorp/hcl/v2/hclparse"
	"github.com/hashicorp/hcl/v2/hclsyntax"

	"github.com/trainyard/terraform-provider-trainyard/internal/acceptance"
)

// TestModulesAreDocumented: the tables in each module's README list its inputs with defaults, and its outputs, in the
// order of the code.
func TestModulesAreDocumented(t *testing.T) {
	for _, name := range modules(t) {
		t.Run(name, func(t *testing.T) {
			folder := filepath.Join(acceptance.Modules, name)
			readme, err := os.ReadFile(filepath.Join(folder, "README.md"))
			if err != nil {
				t.Fatal(err)
			}
			expectTable(t, string(readme), "Inputs", 2, declared(t, folder, "variables.tf", "variable"))
			expectTable(t, string(readme), "Outputs", -1, declared(t, folder, "outputs.tf", "output"))
		})
	}
}

// declaration is a variable or output of a module.
type declaration struct {
	name string
	// value is the text of its default.
	value string
}

// declared returns what a module's file declares in blocks of this kind.
func declared(t *testing.T, folder, file, kind string) []declaration {
	t.Helper()
	path := filepath.Join(folder, file)
	parsed, diagnostics := hclparse.NewParser().ParseHCLFile(path)
	if diagnostics.HasErrors() {
		t.Fatal(diagnostics)
	}
	body, ok := parsed.Body.(*hclsyntax.Body)
	if !ok {
		t.Fatalf("%s is not in Terraform's own syntax", path)
	}
	var all []declaration
	for _, block := range body.Blocks {
		if block.Type != kind {
			continue
		}
		d := declaration{name: block.Labels[0]}
		if description := block.Body.Attributes["description"]; description == nil {
			t.Errorf("%s: %s has no description", path, d.name)
		}
		if value := block.Body.Attributes["default"]; value != nil {
			d.value = string(value.Expr.Range().SliceBytes(parsed.Bytes))
		}
		all = append(all, d)
	}
	return all
}

// expectTable fails unless the table below a heading has a row for each declaration, with its default in a column, if
// any.
func expectTable(t *testing.T, readme, heading string, column int, want []declaration) {
	t.Helper()
	_, section, _ := strings.Cut(readme, "\n## "+heading+"\n")
	section, _, _ = strings.Cut(section, "\n## ")
	var got []declaration
	for _, row := range regexp.MustCompile("(?m)^\\| `.*$").FindAllString(section, -1) {
		cells := strings.Split(strings.Trim(row, "|"), "|")
		for i := range cells {
			cells[i] = strings.Trim(cells[i], " `")
		}
		d := declaration{name: cells[0]}
		if column >= 0 {
			d.value = cells[column]
		}
		got = append(got, d)
	}
	if !slices.Equal(got, want) {
		t.Errorf("the table %q of the README has\n%q, the code\n%q", heading, got, want)
	}
}
