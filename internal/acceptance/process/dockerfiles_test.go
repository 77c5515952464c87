//go:build linux

package process_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/trainyard/terraform-provider-trainyard/internal/acceptance"
	"github.com/trainyard/terraform-provider-trainyard/internal/imagesource"
)

// pin matches a version of a Python package, complete or the first numbers with a star.
var pin = regexp.MustCompile(`([a-z][a-z0-9-]*)(?:\[[a-z,]+\])?==([0-9]+(?:\.[0-9]+)*(?:\.\*)?)`)

// pins returns the versions in a text, as name==version.
func pins(text string) (found []string) {
	for _, parts := range pin.FindAllStringSubmatch(text, -1) {
		found = append(found, parts[1]+"=="+parts[2])
	}
	return found
}

// condition matches the condition of a lock file's entry on the version of Python, and pythonImage an image of one.
var (
	condition   = regexp.MustCompile(`^python_full_version (<|>=) '3\.([0-9]+)'$`)
	pythonImage = regexp.MustCompile(`^python:3\.([0-9]+)-`)
)

// locked returns the versions of the lock files for Python 3.minor.
func locked(t *testing.T, minor int) (versions []string) {
	t.Helper()
	locks, err := filepath.Glob("../../tools/*.txt")
	if err != nil || len(locks) == 0 {
		t.Fatalf("there are no files of tested versions: %v", err)
	}
	for _, lock := range locks {
		for line := range strings.Lines(read(t, "internal/tools", filepath.Base(lock))) {
			entry, marker, _ := strings.Cut(strings.TrimRight(line, " \\\n"), " ; ")
			if applies(t, marker, minor) {
				versions = append(versions, pins(entry)...)
			}
		}
	}
	return versions
}

// applies reports whether a lock file's entry with this marker is for CPython 3.minor.
func applies(t *testing.T, marker string, minor int) bool {
	t.Helper()
	for clause := range strings.SplitSeq(marker, " and ") {
		if clause == "" || strings.HasSuffix(clause, " != 'PyPy'") {
			continue
		}
		parts := condition.FindStringSubmatch(clause)
		if parts == nil {
			t.Fatalf("a lock file has the marker %q, which this test does not understand", clause)
		}
		bound, err := strconv.Atoi(parts[2])
		if err != nil {
			t.Fatal(err)
		}
		if (minor < bound) != (parts[1] == "<") {
			return false
		}
	}
	return true
}

// expectTested fails unless a Dockerfile builds on images of certain versions, and installs versions of Python packages
// that tests run, on the Python that it has. Those for GPUs, which tests don't have, may install others.
func expectTested(t *testing.T, folder, path string) {
	t.Helper()
	bases, err := imagesource.Build{Context: folder, Dockerfile: path}.Bases()
	if err != nil {
		t.Errorf("%s has no base: %v", path, err)
	}
	var tested []string
	for _, base := range bases {
		if _, tag, tagged := strings.Cut(base, ":"); !tagged || tag == "latest" {
			t.Errorf("%s builds on %s, which has no certain version", path, base)
		}
		if parts := pythonImage.FindStringSubmatch(base); parts != nil {
			minor, err := strconv.Atoi(parts[1])
			if err != nil {
				t.Fatal(err)
			}
			tested = locked(t, minor)
		}
	}
	if strings.HasSuffix(path, ".gpu") {
		return
	}
	content, err := os.ReadFile(filepath.Join(folder, path))
	if err != nil {
		t.Fatal(err)
	}
	for _, version := range pins(string(content)) {
		some, starred := strings.CutSuffix(version, "*")
		if !slices.ContainsFunc(tested, func(v string) bool {
			return v == version || starred && strings.HasPrefix(v, some)
		}) {
			t.Errorf("%s installs %s, which no test runs on its Python", path, version)
		}
	}
}

// A module that needs an image on a Swarm has a Dockerfile for one, and its README mentions it, like that of an
// example. It installs the versions that tests run, on a pinned base image.
func TestDockerfiles(t *testing.T) {
	for _, name := range modules(t) {
		t.Run(name, func(t *testing.T) {
			folder := filepath.Join(acceptance.Modules, name)
			readme := read(t, "modules", name, "README.md")
			found := false
			err := fs.WalkDir(os.DirFS(folder), ".", func(path string, entry fs.DirEntry, err error) error {
				if err != nil || !strings.HasPrefix(entry.Name(), "Dockerfile") {
					return err
				}
				found = true
				if !strings.Contains(readme, path) {
					t.Errorf("the README does not mention %s", path)
				}
				expectTested(t, folder, path)
				return nil
			})
			if err != nil {
				t.Error(err)
			}
			wants := slices.ContainsFunc(declared(t, folder, "variables.tf", "variable"),
				func(d declaration) bool { return d.name == "image" && d.value == "null" })
			if wants && !found {
				t.Error("it takes an image, and has no Dockerfile")
			}
		})
	}
	dockerfiles, err := filepath.Glob(acceptance.Examples + "/*/Dockerfile")
	if err != nil || len(dockerfiles) == 0 {
		t.Fatalf("the examples have no Dockerfiles: %v", err)
	}
	for _, dockerfile := range dockerfiles {
		folder := filepath.Dir(dockerfile)
		t.Run(filepath.Base(folder), func(t *testing.T) {
			if !strings.Contains(read(t, "examples", filepath.Base(folder), "README.md"), "(Dockerfile)") {
				t.Error("the README does not mention the Dockerfile")
			}
			expectTested(t, folder, "Dockerfile")
		})
	}
}

// A lock file's entry counts only for the Python that it is for.
func TestLockMarkers(t *testing.T) {
	for marker, want := range map[string][]int{
		"":                             {11, 12, 13},
		"python_full_version < '3.12'": {11},
		"python_full_version >= '3.12' and python_full_version < '3.13'": {12},
		"implementation_name != 'PyPy'":                                  {11, 12, 13},
	} {
		var got []int
		for minor := 11; minor <= 13; minor++ {
			if applies(t, marker, minor) {
				got = append(got, minor)
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("entries with the marker %q are for Python 3.%v, want 3.%v", marker, got, want)
		}
	}
}

// Terraform's own files, which change with each apply, are no part of an image that is built from a folder with a
// configuration.
func TestImagesWithoutTerraformFiles(t *testing.T) {
	digest := func(folder, dockerfile string) string {
		digest, err := imagesource.Build{Context: folder, Dockerfile: dockerfile}.Digest()
		if err != nil {
			t.Fatal(err)
		}
		return digest
	}
	for _, root := range []string{acceptance.Examples, acceptance.Modules} {
		dockerfiles, err := acceptance.Dockerfiles(root)
		if err != nil || len(dockerfiles) == 0 {
			t.Fatalf("%s: no Dockerfiles, %v", root, err)
		}
		for _, dockerfile := range dockerfiles {
			folder := filepath.Join(t.TempDir(), "folder")
			err := acceptance.Copy(folder, filepath.Join(root, filepath.Dir(dockerfile)))
			before := digest(folder, filepath.Base(dockerfile))
			for _, file := range []string{"terraform.tfstate", ".terraform/modules/modules.json"} {
				file = filepath.Join(folder, file)
				err = errors.Join(err, os.MkdirAll(filepath.Dir(file), 0o700), os.WriteFile(file, nil, 0o600))
			}
			if err != nil {
				t.Fatal(err)
			}
			if digest(folder, filepath.Base(dockerfile)) != before {
				t.Errorf("an apply changes the image of %s: its .dockerignore has to exclude Terraform's files",
					dockerfile)
			}
		}
	}
}
