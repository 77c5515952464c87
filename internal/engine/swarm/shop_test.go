//go:build linux

package swarm

import (
	"io"
	"net/http"
	"path"
	"runtime"
	"sync"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/random"

	"github.com/trainyard/terraform-provider-trainyard/internal/acctest/testbed"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/swarm/image"
)

// shop is a registry from which engines pull.
type shop struct {
	// password is that of the user "ops", which pulls require; "" for none.
	password string

	mu     sync.Mutex
	images map[string]v1.Image // by tag
	blobs  map[string]v1.Image // by the digest of the manifest or of its parts
	pulls  int
}

// openShop starts a registry that the engines of a bed can reach until the test ends, and returns its host and port.
func openShop(t *testing.T, bed *testbed.Bed, password string) (registry *shop, host string) {
	t.Helper()
	registry = &shop{password: password, images: map[string]v1.Image{}, blobs: map[string]v1.Image{}}
	listener, err := bed.Listen(0)
	must(t, err)
	server := &http.Server{Handler: registry}
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(func() { _ = server.Close() })
	return registry, listener.Addr().String()
}

// asked returns how often an image was requested.
func (s *shop) asked() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.pulls
}

// sell pushes a new image under a tag, and returns its content digest.
func (s *shop) sell(t *testing.T, tag string) string {
	t.Helper()
	img, err := random.Image(64, 1)
	must(t, err)
	config, err := img.ConfigFile()
	must(t, err)
	config.OS, config.Architecture = "linux", runtime.GOARCH
	img, err = mutate.ConfigFile(img, config)
	must(t, err)
	return s.stock(t, tag, img)
}

// stock pushes an image of one layer under a tag, and returns its content digest.
func (s *shop) stock(t *testing.T, tag string, img v1.Image) string {
	t.Helper()
	id, err := image.ID(img)
	must(t, err)
	digest := digestOf(t, img)
	layers, err := img.Layers()
	must(t, err)
	layer, err := layers[0].Digest()
	must(t, err)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.images[tag] = img
	for _, content := range []string{id, digest, layer.String()} {
		s.blobs[content] = img
	}
	return contentOf(t, img)
}

// ServeHTTP implements the part of the registry API that pulls need.
func (s *shop) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if user, password, _ := r.BasicAuth(); s.password != "" && (user != "ops" || password != s.password) {
		w.Header().Set("WWW-Authenticate", `Basic realm="shop"`)
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	ref := path.Base(r.URL.Path)
	img := s.blobs[ref]
	switch {
	case r.URL.Path == "/v2/":
		return
	case path.Base(path.Dir(r.URL.Path)) == "manifests":
		if img == nil {
			img = s.images[ref]
		}
		s.pulls++
		s.manifest(w, r, img)
	case img == nil:
		http.NotFound(w, r)
	default:
		s.blob(w, img, ref)
	}
}

func (s *shop) manifest(w http.ResponseWriter, r *http.Request, img v1.Image) {
	if img == nil {
		http.NotFound(w, r)
		return
	}
	digest, _ := img.Digest()
	mediaType, _ := img.MediaType()
	content, _ := img.RawManifest()
	w.Header().Set("Content-Type", string(mediaType))
	w.Header().Set("Docker-Content-Digest", digest.String())
	_, _ = w.Write(content)
}

func (s *shop) blob(w http.ResponseWriter, img v1.Image, digest string) {
	if id, _ := image.ID(img); id == digest {
		content, _ := img.RawConfigFile()
		_, _ = w.Write(content)
		return
	}
	layers, _ := img.Layers()
	content, _ := layers[0].Compressed()
	_, _ = io.Copy(w, content)
}

func digestOf(t *testing.T, img v1.Image) string {
	t.Helper()
	digest, err := img.Digest()
	must(t, err)
	return digest.String()
}
