package domain

import (
	"errors"
	"regexp"
	"strings"

	"github.com/distribution/reference"
)

// imageID matches the ID of an image that hosts have, which belongs to no repository.
var imageID = regexp.MustCompile(`^sha256:[0-9a-f]{64}$`)

// validateImage checks that an image, if given, is a reference or an ID.
func validateImage(ps *Problems, at Path, image string) {
	if image == "" || imageID.MatchString(image) {
		return
	}
	_, err := reference.ParseNormalizedNamed(image)
	if strings.HasPrefix(image, "sha256:") {
		// otherwise it would be read as a tag of a repository "sha256"
		err = errors.New("an ID has 64 lower-case hex digits")
	}
	if err != nil {
		ps.Add(at, "Invalid image", "%q is not a valid image: %v; write it as "+
			"[registry/]name[:tag][@sha256:<digest>], such as \"registry.example.com/trainer:1.2\", or as the ID of "+
			"an image that the hosts have, sha256:<64 hex digits>",
			image, err)
	}
}
