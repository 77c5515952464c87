//go:build linux

package acceptance

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/trainyard/terraform-provider-trainyard/internal/qmodel/qmodeltest"
)

// BandModel writes a model that wants one member more where one carries more than upper of its capacity, and one fewer where that is less than lower, and returns
// its file.
func BandModel(t testing.TB, lower, upper float32) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), fmt.Sprintf("band-%v-%v.json", lower, upper))
	if err := os.WriteFile(file, []byte(qmodeltest.Text(qmodeltest.Band(lower, upper))), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}
