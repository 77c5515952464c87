package images

import (
	"bytes"
	"context"
	"io"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/docker/docker/client"
)

// LoadOnce loads an image onto a host that doesn't have it.
func LoadOnce(ctx context.Context, reached client.APIClient, name string, archive func() ([]byte, error)) error {
	_, err := reached.ImageInspect(ctx, name)
	if !cerrdefs.IsNotFound(err) {
		return err
	}
	content, err := archive()
	if err != nil {
		return err
	}
	return load(ctx, reached, bytes.NewReader(content), name)
}

// load loads an archive onto a host. image is the name or content digest of what is in it: with containerd's store, one
// of two concurrent loads fails though the image is there.
func load(ctx context.Context, reached client.APIClient, archive io.Reader, image string) error {
	response, err := reached.ImageLoad(ctx, archive, client.ImageLoadWithQuiet(true))
	if err == nil {
		defer response.Body.Close()
		err = done(response.Body)
	}
	if err != nil {
		if _, missing := InspectImage(ctx, reached, image); missing == nil {
			return nil
		}
	}
	return err
}
