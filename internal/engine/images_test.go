package engine

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
)

func TestImageID(t *testing.T) {
	amd := Image{
		ID: "sha256:amd-id", Content: "sha256:amd",
		Digests: []string{"reg/trainer@sha256:old", "reg/trainer@sha256:all"},
	}
	arm := Image{ID: "sha256:arm", Content: "sha256:arm-content", Digests: []string{"reg/trainer@sha256:all"}}
	other := Image{ID: "sha256:other-id", Content: "sha256:other"}
	elsewhere := Image{ID: "sha256:other-manifest", Content: "sha256:other"} // in another image store
	for name, test := range map[string]struct {
		found map[string]Image
		want  string
		says  []string // what the error contains
	}{
		"one host":                {found: map[string]Image{"a": other}, want: "sha256:other"},
		"the same on all":         {found: map[string]Image{"a": amd, "b": amd}, want: "sha256:amd"},
		"in several image stores": {found: map[string]Image{"a": other, "b": elsewhere}, want: "sha256:other"},
		"of several platforms":    {found: map[string]Image{"a": amd, "b": arm}, want: "reg/trainer@sha256:all"},
		"different images": {
			found: map[string]Image{"b": other, "a": arm},
			says:  []string{"host a has sha256:arm, host b has sha256:other-id", "docker image rm trainer:1"},
		},
		"one that is away": {found: map[string]Image{"a": other, "b": {Away: true}}, want: "sha256:other"},
		"all are away": {
			found: map[string]Image{"a": {Away: true}},
			says:  []string{`none of the reachable hosts has the image "trainer:1"`},
		},
		"one of them from elsewhere": {
			found: map[string]Image{"a": amd, "b": arm, "c": other}, says: []string{"host c has sha256:other-id"},
		},
	} {
		got, err := ImageID("trainer:1", test.found)
		if got != test.want || (err != nil) != (test.says != nil) {
			t.Errorf("%s: got %q (%v), want %q", name, got, err, test.want)
		}
		for _, phrase := range test.says {
			if err != nil && !strings.Contains(err.Error(), phrase) {
				t.Errorf("%s: the error %q does not say %q", name, err, phrase)
			}
		}
	}
}

func TestImageIs(t *testing.T) {
	image := Image{ID: "sha256:1", Content: "sha256:3", Digests: []string{"reg/trainer@sha256:2"}}
	for id, want := range map[string]bool{
		"sha256:1": true, "sha256:3": true, "reg/trainer@sha256:2": true, "sha256:2": false, "": false,
	} {
		if image.Is(id) != want {
			t.Errorf("it is %q: %t", id, !want)
		}
	}
}

func TestImageTakenError(t *testing.T) {
	for name, test := range map[string]struct {
		err  ImageTakenError
		says []string
	}{
		"one host": {ImageTakenError{"trainer:1", "sha256:ours", map[string]string{"gpu1": "sha256:theirs"}}, []string{
			`"trainer:1"`, "host gpu1 has sha256:theirs", "Give sha256:ours another name", "docker image rm trainer:1",
		}},
		"not built yet": {
			ImageTakenError{"trainer:1", "", map[string]string{"gpu2": "sha256:2", "gpu1": "sha256:1"}},
			[]string{"host gpu1 has sha256:1, host gpu2 has sha256:2", "Give the image another name"},
		},
	} {
		for _, phrase := range test.says {
			if !strings.Contains(test.err.Error(), phrase) {
				t.Errorf("%s: %q does not say %q", name, test.err.Error(), phrase)
			}
		}
	}
}

// imageless is an engine without images.
type imageless struct{ Engine }

func (imageless) Traits() Traits { return Traits{Name: "process"} }

// storing is an engine with stores for images and files, of which no call works.
type storing struct{ imageless }

var errStore = errors.New("no such disk")

func (storing) FindImage(context.Context, string) (map[string]Image, error) { return nil, errStore }
func (storing) ProvideImage(context.Context, ImageSpec) (map[string]Image, error) {
	return nil, errStore
}
func (storing) RemoveImage(context.Context, string, string) (map[string]string, error) {
	return nil, errStore
}
func (storing) KeepRegistryLogins(context.Context, string, []string) error { return errStore }

func TestImages(t *testing.T) {
	var calls []string
	intercept := func(e Engine) Engine {
		return Intercept(e, func(_ context.Context, call Call, do func() error) error {
			calls = append(calls, call.Name)
			return do()
		})
	}
	for name, e := range map[string]Engine{"an engine": imageless{}, "an intercepted one": intercept(imageless{})} {
		if _, err := Images(e); err == nil || !strings.Contains(err.Error(), `the engine "process" runs no images`) {
			t.Errorf("%s without images: got %v", name, err)
		}
	}
	for name, e := range map[string]Engine{"an engine": storing{}, "one that is read once": ReadingOnce(storing{})} {
		if _, err := Images(e); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	store, err := Images(intercept(intercept(storing{})))
	if err != nil {
		t.Fatal(err)
	}
	_, found := store.FindImage(t.Context(), "trainer:1")
	_, provided := store.ProvideImage(t.Context(), ImageSpec{})
	_, removed := store.RemoveImage(t.Context(), "trainer:1", "sha256:1")
	for _, err := range []error{found, provided, removed} {
		if !errors.Is(err, errStore) {
			t.Errorf("a call through an interceptor returned %v", err)
		}
	}
	if want := []string{
		"FindImage", "FindImage", "ProvideImage", "ProvideImage", "RemoveImage", "RemoveImage",
	}; !slices.Equal(calls, want) {
		t.Errorf("the interceptors saw %q, want %q", calls, want)
	}
}
