package relay

import (
	"archive/tar"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"

	"github.com/trainyard/terraform-provider-trainyard/internal/bounded"
	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
)

// ReadFolder is that of [engine.Folders], for a folder on the host.
func (c *Client) ReadFolder(
	ctx context.Context, cluster string, folder domain.KeptFolder, visit engine.FolderVisitor,
) error {
	asked, err := json.Marshal(folder)
	if err != nil {
		return err
	}
	body, err := c.post(ctx, path(cluster, readPath), bytes.NewReader(asked))
	if err != nil {
		return err
	}
	defer body.Close()
	archive := tar.NewReader(body)
	for {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return c.failure(ctx, fmt.Errorf("the archive of %s was cut short: %w", folder.Path, err))
		}
		if err := visit(header, archive); err != nil {
			return err
		}
	}
}

// AnswerReadFolder registers the handler of [Client.ReadFolder] with a server.
func AnswerReadFolder(
	mux *http.ServeMux,
	read func(ctx context.Context, cluster string, folder domain.KeptFolder, visit engine.FolderVisitor) error,
) {
	stream(mux, readPath, func(r *http.Request, w io.Writer, flush func()) error {
		var folder domain.KeptFolder
		asked, err := bounded.ReadAll(r.Body, bounded.Answer)
		if err == nil {
			err = json.Unmarshal(asked, &folder)
		}
		if err != nil {
			return err
		}
		archive := tar.NewWriter(w)
		err = read(r.Context(), r.PathValue("cluster"), folder, func(header *tar.Header, content io.Reader) error {
			flush()
			if err := archive.WriteHeader(header); err != nil || content == nil {
				return err
			}
			_, err := io.Copy(archive, content)
			return err
		})
		if err != nil {
			return err
		}
		return archive.Close()
	})
}

// ProvideFiles is that of [engine.FileStore], for the host.
func (c *Client) ProvideFiles(ctx context.Context, cluster string, spec engine.FilesSpec) error {
	tree, err := json.Marshal(spec.Tree)
	if err != nil {
		return err
	}
	content, err := spec.Content()
	if err != nil {
		return err
	}
	defer content.Close()
	// The tree is a single line, as our JSON contains no newlines.
	body, err := c.post(ctx, path(cluster, filesPath), io.MultiReader(bytes.NewReader(append(tree, '\n')), content))
	if err != nil {
		return err
	}
	return body.Close()
}

// mostTree bounds what a host reads of a tree.
const mostTree = 256 << 20

// AnswerProvideFiles registers the handler of [Client.ProvideFiles] with a server.
func AnswerProvideFiles(
	mux *http.ServeMux, provide func(ctx context.Context, cluster string, spec engine.FilesSpec) error,
) {
	mux.HandleFunc(pattern(filesPath), func(w http.ResponseWriter, r *http.Request) {
		var spec engine.FilesSpec
		decoder := json.NewDecoder(io.LimitReader(r.Body, mostTree))
		err := decoder.Decode(&spec.Tree)
		if err == nil {
			spec.Content = func() (io.ReadCloser, error) {
				rest := io.MultiReader(decoder.Buffered(), r.Body)
				_, err := io.ReadFull(rest, make([]byte, 1)) // the end of the line
				return io.NopCloser(rest), err
			}
			err = provide(r.Context(), r.PathValue("cluster"), spec)
		}
		if err != nil {
			refuse(w, err)
		}
	})
}
