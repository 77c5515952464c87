package acctest

import (
	"bytes"
	"context"
	"maps"
	"os/exec"
	"path"
	"slices"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/trainyard/terraform-provider-trainyard/internal/engine/swarm/image"
)

// loader loads images, such as a test bed does onto all its nodes.
type loader interface {
	Load(ctx context.Context, ref string, archive []byte) error
}

// LoadMember loads an image of the program Member onto all nodes of a bed, under a name with a tag. Images with
// different names differ.
func LoadMember(t testing.TB, bed loader, name string) {
	t.Helper()
	loadProgram(t, bed, Member, name)
}

// LoadTrainer loads an image of the program Trainer as [LoadMember] does.
func LoadTrainer(t testing.TB, bed loader, name string) {
	t.Helper()
	loadProgram(t, bed, Trainer, name)
}

// loadProgram loads an image of a program of this module.
func loadProgram(t testing.TB, bed loader, pkg, name string) {
	t.Helper()
	config, program := programImage(t, pkg)
	loadImage(t, bed, name, config, program)
}

// programImage returns the configuration and the file of an image of a program of this module.
func programImage(t testing.TB, pkg string) (v1.Config, image.File) {
	t.Helper()
	entrypoint := "/" + path.Base(pkg)
	program, err := image.FromDisk(entrypoint, Build(t, pkg))
	if err != nil {
		t.Fatal(err)
	}
	return v1.Config{Entrypoint: []string{entrypoint}}, program
}

// LoadPrometheus loads an image of this machine's Prometheus as [LoadMember] does. It runs as the official image does.
func LoadPrometheus(t testing.TB, bed loader, name string) {
	t.Helper()
	program, err := exec.LookPath("prometheus")
	if err != nil {
		t.Fatalf("this needs Prometheus: apt-get install --no-install-recommends prometheus (its service is not "+
			"needed, and need not run): %v", err)
	}
	files, err := image.Libraries(program)
	if err != nil {
		t.Fatal(err)
	}
	const entrypoint = "/bin/prometheus"
	file, err := image.FromDisk(entrypoint, program)
	if err != nil {
		t.Fatal(err)
	}
	loadImage(t, bed, name, v1.Config{Entrypoint: []string{entrypoint}}, append(files, file)...)
}

func loadImage(t testing.TB, bed loader, name string, config v1.Config, files ...image.File) {
	t.Helper()
	var archive bytes.Buffer
	if err := image.Write(&archive, name, buildImage(t, name, config, files...)); err != nil {
		t.Fatal(err)
	}
	if err := bed.Load(t.Context(), name, archive.Bytes()); err != nil {
		t.Fatal(err)
	}
}

// buildImage returns an image that differs from those with other names.
func buildImage(t testing.TB, name string, config v1.Config, files ...image.File) v1.Image {
	t.Helper()
	config.Labels = map[string]string{"name": name}
	img, err := image.Build(config, files...)
	if err != nil {
		t.Fatal(err)
	}
	return img
}

// LoadShell loads an image with this machine's shell, and other programs for its scripts, as [LoadMember] does.
func LoadShell(t testing.TB, bed loader, name string, programs ...string) {
	t.Helper()
	files := map[string]image.File{}
	for _, program := range append(programs, "sh") {
		found, err := exec.LookPath(program)
		if err != nil {
			t.Fatal(err)
		}
		own, err := image.FromDisk("/bin/"+program, found)
		if err != nil {
			t.Fatal(err)
		}
		libraries, err := image.Libraries(found)
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range append(libraries, own) {
			files[file.Path] = file
		}
	}
	loadImage(t, bed, name, v1.Config{Entrypoint: []string{"/bin/sh"}, Env: []string{"PATH=/bin"}},
		slices.Collect(maps.Values(files))...)
}
