// Package image builds images without a Docker Engine or a registry, so that they can be loaded onto any Engine. The
// same files make the same image, with the same ID, on every node and in every run.
package image

import (
	"fmt"
	"io"
	"runtime"
	"time"

	"github.com/distribution/reference"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

// epoch is the creation time of all images and their files: the current time would give each build another ID.
var epoch = time.Unix(0, 0).UTC()

// Build builds a Linux image of only these files, for this program's architecture. Config is what a Dockerfile sets:
// Entrypoint, Cmd, Env, WorkingDir, Labels and so on. The files are read here once, and again by Write.
func Build(config v1.Config, files ...File) (v1.Image, error) {
	layer, err := newLayer(files)
	if err != nil {
		return nil, fmt.Errorf("building an image: %w", err)
	}
	base, err := mutate.ConfigFile(empty.Image, &v1.ConfigFile{
		OS:           "linux",
		Architecture: runtime.GOARCH,
		Created:      v1.Time{Time: epoch},
		Config:       config,
		RootFS:       v1.RootFS{Type: "layers"},
	})
	if err != nil {
		return nil, err
	}
	return mutate.Append(base, mutate.Addendum{
		Layer:   layer,
		History: v1.History{Created: v1.Time{Time: epoch}, CreatedBy: "trainyard"},
	})
}

// ID returns the ID that engines give the image: "sha256:" and 64 hexadecimal digits.
func ID(img v1.Image) (string, error) {
	id, err := img.ConfigName()
	if err != nil {
		return "", err
	}
	return id.String(), nil
}

// Write writes the image as a docker-archive, which engines load under this reference. A reference without a tag gets
// the tag latest, as usual with Docker; one with a digest, or an ID, is an error, as an archive can't set these.
func Write(w io.Writer, ref string, img v1.Image) error {
	parsed, err := reference.ParseAnyReference(ref)
	if err != nil {
		return fmt.Errorf("image reference %q: %w", ref, err)
	}
	named, hasName := parsed.(reference.Named)
	if _, hasDigest := parsed.(reference.Digested); hasDigest || !hasName {
		return fmt.Errorf("image reference %q: must be a name and a tag, not a digest or an ID", ref)
	}
	tag, err := name.NewTag(reference.FamiliarString(reference.TagNameOnly(named)))
	if err != nil {
		return fmt.Errorf("image reference %q: %w", ref, err)
	}
	if err := tarball.Write(tag, img, w); err != nil {
		return fmt.Errorf("writing image %s: %w", tag, err)
	}
	return nil
}
