// Package imagesource reads what images are made from on this machine: docker-archives, and folders that images are
// built from. It needs no Docker Engine.
package imagesource

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path"

	"github.com/distribution/reference"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

// Archive is an image in a docker-archive, as written by docker save.
type Archive struct {
	// Content is the image's content digest, see [ContentDigest].
	Content string
	// Digest is the digest of the file.
	Digest string

	path  string
	image tarball.Descriptor
}

// OpenArchive reads which image is in an archive. If there are several, it is the one with this reference.
func OpenArchive(file, ref string) (Archive, error) {
	digest, err := digestOf(file)
	if err != nil {
		return Archive{}, err
	}
	open := func() (io.ReadCloser, error) { return os.Open(file) }
	manifest, err := tarball.LoadManifest(open)
	if err != nil {
		return Archive{}, fmt.Errorf(
			"%s is not a docker-archive (%w): create one with docker save --output, and leave it uncompressed", file,
			err,
		)
	}
	chosen, tag, err := choose(manifest, ref)
	if err != nil {
		return Archive{}, fmt.Errorf("%s: %w", file, err)
	}
	image, err := tarball.Image(open, tag)
	if err != nil {
		return Archive{}, fmt.Errorf("%s is not a complete docker-archive: %w", file, err)
	}
	config, err := image.ConfigFile()
	if err != nil {
		return Archive{}, fmt.Errorf("%s: %w", file, err)
	}
	return Archive{Content: ContentDigest(*config), Digest: digest, path: file, image: chosen}, nil
}

// choose returns the only image, or the one with the reference together with its tag.
func choose(manifest tarball.Manifest, ref string) (tarball.Descriptor, *name.Tag, error) {
	if len(manifest) == 1 {
		return manifest[0], nil, nil
	}
	var there []string
	for _, image := range manifest {
		for _, tagged := range image.RepoTags {
			if !same(tagged, ref) {
				there = append(there, tagged)
				continue
			}
			tag, err := name.NewTag(tagged)
			return image, &tag, err
		}
	}
	return tarball.Descriptor{}, nil, fmt.Errorf("it holds %d images, but not %q: there are %q; save a single image",
		len(manifest), ref, there)
}

// same reports whether two references are equal after adding defaults.
func same(a, b string) bool {
	first, err := reference.ParseNormalizedNamed(a)
	if err != nil {
		return false
	}
	second, err := reference.ParseNormalizedNamed(b)
	return err == nil && reference.TagNameOnly(first).String() == reference.TagNameOnly(second).String()
}

// indexes are the files of an archive that list its images and their names.
var indexes = map[string]bool{"manifest.json": true, "repositories": true, "index.json": true, "oci-layout": true}

// Untagged reads the archive with just this image and without a reference, so that loading it changes no other image.
func (a Archive) Untagged() (io.ReadCloser, error) {
	file, err := os.Open(a.path)
	if err != nil {
		return nil, err
	}
	r, w := io.Pipe()
	go func() {
		defer file.Close()
		w.CloseWithError(a.untag(w, file))
	}()
	return r, nil
}

func (a Archive) untag(w io.Writer, file io.Reader) error {
	from, to := tar.NewReader(file), tar.NewWriter(w)
	for {
		header, err := from.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return fmt.Errorf("%s: %w", a.path, err)
		}
		if !indexes[path.Clean(header.Name)] {
			err = add(to, header, from)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", a.path, err)
		}
	}
	image := a.image
	image.RepoTags = nil
	manifest, err := json.Marshal(tarball.Manifest{image})
	if err != nil {
		return err
	}
	header := &tar.Header{Typeflag: tar.TypeReg, Name: "manifest.json", Mode: 0o644, Size: int64(len(manifest))}
	if err := add(to, header, bytes.NewReader(manifest)); err != nil {
		return err
	}
	return to.Close()
}

// add adds a file to an archive.
func add(to *tar.Writer, header *tar.Header, content io.Reader) error {
	if err := to.WriteHeader(header); err != nil {
		return err
	}
	_, err := io.Copy(to, content)
	return err
}

// digestOf returns the digest of a file's content.
func digestOf(file string) (string, error) {
	content, err := os.Open(file)
	if err != nil {
		return "", err
	}
	defer content.Close()
	hash := sha256.New()
	if _, err := io.Copy(hash, content); err != nil {
		return "", err
	}
	return encoded(hash.Sum(nil)), nil
}

// encoded returns a checksum as a digest of the form that images have.
func encoded(sum []byte) string { return "sha256:" + hex.EncodeToString(sum) }
