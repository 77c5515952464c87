//go:build linux

package process_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/trainyard/terraform-provider-trainyard/internal/acceptance"
	"github.com/trainyard/terraform-provider-trainyard/internal/imagesource"
)

// pin matches a version of a Python package, complete or the first numbers with a star.
var pin = regexp.MustCompile(`[a-z][a-z0-9-]*==[0-9]+(\.[0-9]+)*(\.\*)?`)

// A module that needs an image on a Swarm has a Dockerfile for one, and its README mentions it. It installs the
// versions that tests run, on a pinned base image.
func TestDockerfiles(t *testing.T) {
	var tested []string
	locks, err := filepath.Glob("../../tools/*.txt")
	if err != nil || len(locks) == 0 {
		t.Fatalf("there are no files of tested versions: %v", err)
	}
	for _, lock := range locks {
		tested = append(tested, pin.FindAllString(read(t, "internal/tools", filepath.Base(lock)), -1)...)
	}
	for _, name := range modules(t) {
		t.Run(name, func(t *testing.T) {
			folder := filepath.Join(acceptance.Modules, name)
			readme := read(t, "modules", name, "README.md")
			found := false
			err := fs.WalkDir(os.DirFS(folder), ".", func(path string, entry fs.DirEntry, err error) error {
				if err != nil || entry.Name() != "Dockerfile" {
					return err
				}
				found = true
				if !strings.Contains(readme, path) {
					t.Errorf("the README does not mention %s", path)
				}
				bases, err := imagesource.Build{Context: folder, Dockerfile: path}.Bases()
				if err != nil || len(bases) == 0 {
					t.Errorf("%s has no base: %v", path, err)
				}
				for _, base := range bases {
					if _, tag, tagged := strings.Cut(base, ":"); !tagged || tag == "latest" {
						t.Errorf("%s builds on %s, which has no certain version", path, base)
					}
				}
				for _, version := range pin.FindAllString(read(t, "modules", name, path), -1) {
					some, starred := strings.CutSuffix(version, "*")
					if !slices.ContainsFunc(tested, func(v string) bool {
						return v == version || starred && strings.HasPrefix(v, some)
					}) {
						t.Errorf("%s installs %s, which no test runs", path, version)
					}
				}
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
}

// Terraform's own files, which change with each apply, are no part of an image that is built from a folder with a
// configuration.
func TestImagesWithoutTerraformFiles(t *testing.T) {
	digest := func(folder string) string {
		digest, err := imagesource.Build{Context: folder, Dockerfile: "Dockerfile"}.Digest()
		if err != nil {
			t.Fatal(err)
		}
		return digest
	}
	for _, root := range []string{acceptance.Examples, acceptance.Modules} {
		dockerfiles, err := filepath.Glob(root + "/*/Dockerfile")
		if err != nil || len(dockerfiles) == 0 {
			t.Fatalf("%s: no Dockerfiles, %v", root, err)
		}
		for _, dockerfile := range dockerfiles {
			folder := filepath.Join(t.TempDir(), "folder")
			err := os.CopyFS(folder, os.DirFS(filepath.Dir(dockerfile)))
			before := digest(folder)
			for _, file := range []string{"terraform.tfstate", ".terraform/modules/modules.json"} {
				file = filepath.Join(folder, file)
				err = errors.Join(err, os.MkdirAll(filepath.Dir(file), 0o700), os.WriteFile(file, nil, 0o600))
			}
			if err != nil {
				t.Fatal(err)
			}
			if digest(folder) != before {
				t.Errorf("an apply changes the image of %s: its .dockerignore has to exclude Terraform's files",
					filepath.Dir(dockerfile))
			}
		}
	}
}
