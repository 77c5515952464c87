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
	"github.com/trainyard/terraform-provider-trainyard/internal/imagesource"
)

// read returns the text of a file, given its path from the top of the repository.
func read(t *testing.T, parts ...string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(append([]string{"../../.."}, parts...)...))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestExperimentsParameters: the module's README lists exactly the parameters with their defaults.
func TestExperimentsParameters(t *testing.T) {
	const module = "modules/experiments"
	var want, got []string
	declared := regexp.MustCompile(`(?m)^ +(\w+) += \{ default = "?([\w.]+)"?,`)
	for _, found := range declared.FindAllStringSubmatch(read(t, module, "parameters.tf"), -1) {
		value := found[2]
		switch found[1] {
		case "learning_rate":
			value = "0.000001" // the network's; the table's is in the text beside it
		case "agent":
			value = "`" + value + "`"
		}
		want = append(want, found[1]+" "+value)
	}
	_, table, _ := strings.Cut(read(t, module, "README.md"), "| section | parameters")
	table, _, _ = strings.Cut(table, "\n\n")
	for _, found := range regexp.MustCompile("[|,] `(\\w+)` (`?[\\w.]+`?)").FindAllStringSubmatch(table, -1) {
		got = append(got, found[1]+" "+found[2])
	}
	if len(want) == 0 || !slices.Equal(got, want) {
		t.Errorf("the README has\n%q, the code has\n%q", got, want)
	}
}

// TestExperimentsImage: the module's Dockerfile is valid as far as can be checked without Docker, and has the NumPy
// that the program is tested with.
func TestExperimentsImage(t *testing.T) {
	folder := filepath.Join(acceptance.Modules, "experiments", "train")
	build := imagesource.Build{Context: folder, Dockerfile: "Dockerfile"}
	if err := build.Check(); err != nil {
		t.Fatal(err)
	}
	bases, err := build.Bases()
	if err != nil || !slices.Equal(bases, []string{"python:3.11-slim"}) {
		t.Errorf("it is built from %q, %v", bases, err)
	}
	dockerfile := read(t, "modules/experiments/train/Dockerfile")
	locked := regexp.MustCompile(`(?m)^numpy==([\d.]+) ; python_full_version < '3\.12'`)
	numpy := locked.FindStringSubmatch(read(t, "internal/tools/rl.txt"))
	if numpy == nil || !strings.Contains(dockerfile, "numpy=="+numpy[1]+"\n") {
		t.Errorf("NumPy is tested as %q, the Dockerfile has\n%s", numpy, dockerfile)
	}
	if !strings.Contains(dockerfile, "COPY *.py /srv/experiments/\n") {
		t.Errorf("it does not bring the program to where the module runs it:\n%s", dockerfile)
	}
}
