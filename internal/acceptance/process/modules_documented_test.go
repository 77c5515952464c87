//go:build linux

package process_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclparse"
	"github.com/hashicorp/hcl/v2/hclsyntax"

	"github.com/trainyard/terraform-provider-trainyard/internal/acceptance"
)

// TestModulesAreDocumented: the tables in each module's README list its inputs with type and default, and its outputs,
// in the order of the code. Where a row has "`port` (8000", that is the default of this attribute in the type, if the
// type has one.
func TestModulesAreDocumented(t *testing.T) {
	for _, name := range modules(t) {
		t.Run(name, func(t *testing.T) {
			folder := filepath.Join(acceptance.Modules, name)
			readme, err := os.ReadFile(filepath.Join(folder, "README.md"))
			if err != nil {
				t.Fatal(err)
			}
			variables := declared(t, folder, "variables.tf", "variable")
			inputs := rowsOf(string(readme), "Inputs")
			expectRows(t, inputs, variables, func(d declaration) []string { return []string{d.name, d.kind, d.value} })
			expectAttributes(t, inputs, variables)
			outputs := declared(t, folder, "outputs.tf", "output")
			expectRows(t, rowsOf(string(readme), "Outputs"), outputs, func(d declaration) []string {
				return []string{d.name}
			})
		})
	}
}

// TestSparkIsScrapedAsDocumented: the example of the module spark, which its tests plan, passes what the README says to
// the module monitoring.
func TestSparkIsScrapedAsDocumented(t *testing.T) {
	snippet := regexp.MustCompile(`(?m)^  scrape_configs = .*$`).FindString(read(t, "modules", "spark", "README.md"))
	example := read(t, "modules", "spark", "examples", "complete", "main.tf")
	if snippet == "" || !strings.Contains(example, "\n"+snippet+"\n") {
		t.Errorf("the README says %q, which the example does not have", snippet)
	}
}

// declaration is a variable or output of a module.
type declaration struct {
	name string
	// kind is the type, as a README shortens it.
	kind string
	// value is the text of the default, attributes that of an object's attributes.
	value      string
	attributes map[string]string
}

// declared returns what a module's file declares in blocks of this type.
func declared(t *testing.T, folder, file, block string) []declaration {
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
	text := func(e hclsyntax.Expression) string { return string(e.Range().SliceBytes(parsed.Bytes)) }
	var all []declaration
	for _, found := range body.Blocks {
		if found.Type != block {
			continue
		}
		d := declaration{name: found.Labels[0], attributes: map[string]string{}}
		if found.Body.Attributes["description"] == nil {
			t.Errorf("%s: %s has no description", path, d.name)
		}
		if value := found.Body.Attributes["default"]; value != nil {
			d.value = text(value.Expr)
		}
		if of := found.Body.Attributes["type"]; of != nil {
			d.kind = typeOf(of.Expr, text)
			for name, value := range defaultsIn(of.Expr) {
				d.attributes[name] = text(value)
			}
		}
		if found.Body.Attributes["ephemeral"] != nil {
			d.kind += ", ephemeral"
		}
		all = append(all, d)
	}
	return all
}

// typeOf returns a type as a README shortens it: without the attributes of objects.
func typeOf(e hclsyntax.Expression, text func(hclsyntax.Expression) string) string {
	call, ok := e.(*hclsyntax.FunctionCallExpr)
	switch {
	case !ok:
		return text(e)
	case call.Name == "object":
		return "object"
	case typeOf(call.Args[0], text) == "object":
		return call.Name + " of objects"
	}
	return text(e)
}

// defaultsIn returns the defaults of an object type's attributes, by name.
func defaultsIn(e hclsyntax.Expression) map[string]hclsyntax.Expression {
	defaults := map[string]hclsyntax.Expression{}
	object, ok := e.(*hclsyntax.FunctionCallExpr)
	if !ok || object.Name != "object" {
		return defaults
	}
	attributes, _ := object.Args[0].(*hclsyntax.ObjectConsExpr)
	for _, attribute := range attributes.Items {
		optional, ok := attribute.ValueExpr.(*hclsyntax.FunctionCallExpr)
		if ok && len(optional.Args) == 2 {
			defaults[hcl.ExprAsKeyword(attribute.KeyExpr)] = optional.Args[1]
		}
	}
	return defaults
}

// rowsOf returns the cells of the table below a heading, by row.
func rowsOf(readme, heading string) (rows [][]string) {
	_, section, _ := strings.Cut(readme, "\n## "+heading+"\n")
	section, _, _ = strings.Cut(section, "\n## ")
	for _, row := range regexp.MustCompile("(?m)^\\| `.*$").FindAllString(section, -1) {
		cells := strings.Split(strings.Trim(row, "|"), "|")
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		rows = append(rows, cells)
	}
	return rows
}

// expectRows fails unless rows begin with what is shown of the declarations.
func expectRows(t *testing.T, rows [][]string, of []declaration, shown func(declaration) []string) {
	t.Helper()
	var got, want [][]string
	for _, d := range of {
		want = append(want, shown(d))
	}
	for _, row := range rows {
		var begin []string
		for _, cell := range row[:len(shown(declaration{}))] {
			begin = append(begin, strings.Trim(cell, "`"))
		}
		got = append(got, begin)
	}
	if err := acceptance.Differences(want, got); err != nil {
		t.Errorf("a table of the README: %v", err)
	}
}

// attributeValue matches an attribute in a row and, in parentheses behind it, a number or code.
var attributeValue = regexp.MustCompile("`(\\w+)` \\(([0-9`][^ ,;)]*)")

// expectAttributes fails unless the rows of variables have the defaults of those attributes that they give one for.
func expectAttributes(t *testing.T, rows [][]string, variables []declaration) {
	t.Helper()
	defaults := map[string]map[string]string{}
	for _, v := range variables {
		defaults["`"+v.name+"`"] = v.attributes
	}
	for _, row := range rows {
		for _, named := range attributeValue.FindAllStringSubmatch(row[len(row)-1], -1) {
			want := defaults[row[0]][named[1]]
			if want != "" && strings.Trim(named[2], "`\"") != strings.Trim(want, "\"") {
				t.Errorf("%s: the README has %s for %s, the code %s", row[0], named[2], named[1], want)
			}
		}
	}
}
