//go:build linux

package acceptance

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The addresses of the group and the cluster in most configurations.
const (
	TheJob = "trainyard_group.job"
	TheLab = "trainyard_cluster.lab"
)

// Pool returns the configuration of a GPU pool with these attributes.
func Pool(name, attributes string) string {
	return fmt.Sprintf(`
resource "trainyard_gpu_pool" %[1]q {
  cluster = trainyard_cluster.lab
  name    = %[1]q
  %[2]s
}
`, name, attributes)
}

// Follows returns the configuration of a policy with these attributes, which decides every second for the workers of a
// group.
func Follows(group, attributes string) string {
	return fmt.Sprintf(`
resource "trainyard_autoscaling_policy" %[1]q {
  cluster  = trainyard_cluster.lab
  group    = trainyard_group.%[1]s.name
  role     = "worker"
  interval = "1s"
  %[2]s
}
`, group, attributes)
}

// List formats texts as a list in a configuration.
func List(texts ...string) string {
	quoted := make([]string, len(texts))
	for i, text := range texts {
		quoted[i] = fmt.Sprintf("%q", text)
	}
	return "[" + strings.Join(quoted, ", ") + "]"
}

// Step returns the configuration of a test step that is too long to be inline.
func Step(t testing.TB, test, step string) string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join("testdata", test, step, "main.tf"))
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}
