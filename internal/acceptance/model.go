//go:build linux

package acceptance

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/trainyard/terraform-provider-trainyard/internal/qmodel"
	"github.com/trainyard/terraform-provider-trainyard/internal/qmodel/qmodeltest"
)

// BandModel writes a model that adds a member if each carries more than upper of its capacity, and removes one below
// lower, and returns the model's file.
func BandModel(t testing.TB, lower, upper float32) string {
	t.Helper()
	return ModelFile(t, qmodeltest.Band(lower, upper))
}

// ModelFile writes a model, and returns its file.
func ModelFile(t testing.TB, m *qmodel.Model) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "model.json")
	if err := os.WriteFile(file, []byte(qmodeltest.Text(m)), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}
