package engine

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
)

func (storing) FilesPath(digest string) string { return "/content/" + digest }
func (storing) FindFiles(context.Context) (map[string]HostFiles, error) {
	return nil, errStore
}
func (storing) ProvideFiles(context.Context, FilesSpec) error { return errStore }
func (storing) RemoveFiles(context.Context, []string) error   { return errStore }

// around wraps another engine.
type around struct{ Engine }

func (a around) Unwrap() Engine { return a.Engine }

func TestFiles(t *testing.T) {
	var calls []string
	intercept := func(e Engine) Engine {
		return Intercept(e, func(_ context.Context, call Call, do func() error) error {
			calls = append(calls, call.Name)
			return do()
		})
	}
	for name, e := range map[string]Engine{
		"an engine": imageless{}, "an intercepted one": intercept(imageless{}), "one around it": around{imageless{}},
	} {
		if _, err := Files(e); err == nil || !strings.Contains(err.Error(),
			`the engine "process" does not copy files to its hosts`) ||
			!strings.Contains(err.Error(), "trainyard_image") {
			t.Errorf("%s without files: got %v", name, err)
		}
	}
	store, err := Files(around{ReadingOnce(intercept(around{storing{}}))})
	if err != nil {
		t.Fatal(err)
	}
	_, found := store.FindFiles(t.Context())
	for _, err := range []error{
		found, store.ProvideFiles(t.Context(), FilesSpec{}), store.RemoveFiles(t.Context(), nil),
	} {
		if !errors.Is(err, errStore) {
			t.Errorf("a call through an interceptor returned %v", err)
		}
	}
	if path := store.FilesPath("a"); path != "/content/a" {
		t.Errorf("the path is %q", path)
	}
	if want := []string{"FindFiles", "ProvideFiles", "RemoveFiles"}; !slices.Equal(calls, want) {
		t.Errorf("the interceptor saw %q, want %q", calls, want)
	}
}
