package acctest

import (
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	"github.com/google/go-containerregistry/pkg/v1/remote"
)

// RegistryUser is the user who may pull from a [Registry].
const RegistryUser = "ops"

// Registry is an image registry that requires a login.
type Registry struct {
	// Host is the prefix of its image names.
	Host string

	content  http.Handler
	mu       sync.Mutex
	password string
}

// ServeRegistry serves a registry until the test ends. Only [RegistryUser] may pull, with this password.
func ServeRegistry(t testing.TB, listener net.Listener, password string) *Registry {
	t.Helper()
	r := &Registry{
		Host: listener.Addr().String(), password: password,
		content: registry.New(registry.Logger(log.New(io.Discard, "", 0))),
	}
	server := &http.Server{Handler: r} //nolint:gosec // only for a test
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(func() { _ = server.Close() })
	return r
}

// SetPassword changes the password.
func (r *Registry) SetPassword(password string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.password = password
}

// ServeHTTP requires basic authentication, and then serves the registry.
func (r *Registry) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	r.mu.Lock()
	want := r.password
	r.mu.Unlock()
	if user, password, _ := request.BasicAuth(); user != RegistryUser || password != want {
		w.Header().Set("WWW-Authenticate", `Basic realm="registry"`)
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	r.content.ServeHTTP(w, request)
}

// RoundTrip lets the test push images without a network or a login.
func (r *Registry) RoundTrip(request *http.Request) (*http.Response, error) {
	asked := request.Clone(request.Context())
	if asked.Body == nil {
		asked.Body = http.NoBody // as servers receive it
	}
	answer := httptest.NewRecorder()
	r.content.ServeHTTP(answer, asked)
	response := answer.Result()
	response.Request = request
	return response, nil
}

// Push pushes an image of a program of this module, such as [Member], and returns the image's name.
func (r *Registry) Push(t testing.TB, pkg, repository string) string {
	t.Helper()
	config, program := programImage(t, pkg)
	tag, err := name.NewTag(r.Host+"/"+repository, name.Insecure)
	if err != nil {
		t.Fatal(err)
	}
	if err := remote.Write(tag, buildImage(t, tag.String(), config, program), remote.WithTransport(r)); err != nil {
		t.Fatal(err)
	}
	return tag.String()
}
