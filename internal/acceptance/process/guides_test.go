//go:build linux

package process_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/trainyard/terraform-provider-trainyard/internal/acceptance"
	"github.com/trainyard/terraform-provider-trainyard/internal/acctest"
)

// root is the top folder of the repository.
const root = "../../.."

var configurations = regexp.MustCompile("(?sm)^```terraform\n(.*?)^```$")

// complete returns the configurations on a page that can be used as they are: those that name the providers that they
// require, except excerpts and calls of modules, which would have to be downloaded.
func complete(t *testing.T, page string) (found []string) {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(root, page))
	if err != nil {
		t.Fatal(err)
	}
	for _, block := range configurations.FindAllStringSubmatch(string(content), -1) {
		if strings.Contains(block[1], "required_providers") && !strings.Contains(block[1], "…") &&
			!strings.Contains(block[1], "module \"") {
			found = append(found, block[1])
		}
	}
	return found
}

// Terraform accepts the complete configurations in README and guides.
func TestAccGuides(t *testing.T) {
	pages, err := filepath.Glob(filepath.Join(root, "templates/guides/*.md"))
	if err != nil {
		t.Fatal(err)
	}
	var seen []string
	for _, page := range append(pages, filepath.Join(root, "README.md"), filepath.Join(root, "docs/index.md")) {
		page, err := filepath.Rel(root, page)
		if err != nil {
			t.Fatal(err)
		}
		for _, configuration := range complete(t, page) {
			seen = append(seen, page)
			t.Run(page, func(t *testing.T) {
				w, _ := newWorkspace(t)
				w.Write("main.tf", configuration)
				w.Must("validate")
			})
		}
	}
	for _, page := range []string{
		"README.md", "docs/index.md", "templates/guides/ubuntu-to-swarm.md", "templates/guides/ubuntu-to-bare-hosts.md",
	} {
		if !slices.Contains(seen, page) {
			t.Errorf("%s has no complete configuration", page)
		}
	}
}

// Terraform accepts the configuration at the start of each module's README as it is, except for where the module is.
func TestAccModuleReadmes(t *testing.T) {
	for _, name := range modules(t) {
		if strings.Contains(name, "/") {
			continue // a submodule
		}
		t.Run(name, func(t *testing.T) {
			first := configurations.FindStringSubmatch(read(t, "modules", name, "README.md"))
			const published = `"github.com/trainyard/terraform-provider-trainyard//modules/`
			if first == nil || !strings.Contains(first[1], published+name+`"`) ||
				!strings.Contains(first[1], "required_providers") {
				t.Fatalf("the README does not begin with a complete configuration, but with %q", first)
			}
			w, _ := newWorkspace(t)
			acceptance.WithModules(w)
			w.Write("main.tf", strings.ReplaceAll(first[1], published, `"./modules/`))
			w.Must("get")
			w.Must("validate")
		})
	}
}

// The README's first configuration runs as it is: each member gets the addresses of all. The index begins with the
// same.
func TestAccReadme(t *testing.T) {
	w, l := newWorkspace(t)
	first := complete(t, "README.md")[0]
	if index := complete(t, "docs/index.md")[0]; index != first {
		t.Errorf("the index begins with\n%s\nand the README with\n%s", index, first)
	}
	w.Write("main.tf", first)
	w.Must("apply", "-auto-approve")
	w.ExpectNoChange("after the apply")
	members := []string{
		"mnist-ps-0", "mnist-ps-1", "mnist-worker-0", "mnist-worker-1", "mnist-worker-2", "mnist-worker-3",
	}
	acctest.Eventually(t, "all members to print their TF_CONFIG", func() bool {
		printed := 0
		for _, lines := range l.logs(members...) {
			if len(lines) == 1 && strings.Count(lines[0], "127.0.0.1:") == len(members) {
				printed++
			}
		}
		return printed == len(members)
	})
	w.Must("destroy", "-auto-approve")
	w.ExpectNobody("after the destroy")
}
