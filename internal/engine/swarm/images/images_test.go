package images

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"strings"
	"testing"

	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
)

func hostsOf(architectures ...string) (hosts []imageHost) {
	for i, architecture := range architectures {
		hosts = append(hosts, imageHost{name: fmt.Sprintf("gpu%d", i+1), architecture: architecture})
	}
	return hosts
}

func TestProvisionCheck(t *testing.T) {
	archive := func() engine.ImageSpec { return engine.ImageSpec{ID: "sha256:new", Archive: nothing} }
	build := engine.ImageSpec{Build: &engine.ImageBuild{Source: "sha256:source"}}
	replacing := archive()
	replacing.Replaces = map[string]string{"gpu1": "sha256:old", "gpu2": "reg/trainer@sha256:all"}
	for name, test := range map[string]struct {
		spec   engine.ImageSpec
		before map[string]engine.Image
		id     string
		taken  map[string]string
	}{
		"nothing there": {spec: archive(), id: "sha256:new"},
		"the image is there": {
			spec: archive(), before: map[string]engine.Image{"gpu1": {ID: "sha256:new"}}, id: "sha256:new",
		},
		"another is there": {
			spec: archive(), before: map[string]engine.Image{"gpu1": {ID: "sha256:old"}, "gpu2": {ID: "sha256:new"}},
			id: "sha256:new", taken: map[string]string{"gpu1": "sha256:old"},
		},
		"one that is replaced": {
			spec: replacing, before: map[string]engine.Image{"gpu1": {ID: "sha256:old"}}, id: "sha256:new",
		},
		"one of its platform": {
			spec:   replacing,
			before: map[string]engine.Image{"gpu2": {ID: "sha256:arm", Digests: []string{"reg/trainer@sha256:all"}}},
			id:     "sha256:new",
		},
		"one that came after a plan": {
			spec: replacing, before: map[string]engine.Image{"gpu1": {ID: "sha256:later"}}, id: "sha256:new",
			taken: map[string]string{"gpu1": "sha256:later"},
		},
		"what was replaced elsewhere": {
			spec: replacing, before: map[string]engine.Image{"gpu3": {ID: "sha256:old"}}, id: "sha256:new",
			taken: map[string]string{"gpu3": "sha256:old"},
		},
		"one that was built for it": {
			spec: archive(), before: map[string]engine.Image{"gpu1": {ID: "sha256:old", Source: "sha256:older"}},
			id: "sha256:new",
		},
		"a build": {spec: build},
		"a build in the way": {
			spec: build, before: map[string]engine.Image{"gpu1": {ID: "sha256:old"}},
			taken: map[string]string{"gpu1": "sha256:old"},
		},
		"a build made before": {spec: build, before: map[string]engine.Image{
			"gpu2": {ID: "sha256:built-id", Content: "sha256:built", Source: "sha256:source"},
		}, id: "sha256:built"},
		"a build of something else": {
			spec: build,
			before: map[string]engine.Image{
				"gpu2": {ID: "sha256:built-id", Content: "sha256:built", Source: "sha256:older"},
			},
		},
		"whatever is pulled": {before: map[string]engine.Image{"gpu1": {ID: "sha256:1"}, "gpu2": {ID: "sha256:2"}}},
		"pulled before": {
			spec:   engine.ImageSpec{ID: "sha256:1"},
			before: map[string]engine.Image{"gpu1": {ID: "sha256:1"}, "gpu2": {ID: "sha256:2"}}, id: "sha256:1",
			taken: map[string]string{"gpu2": "sha256:2"},
		},
	} {
		test.spec.Name = "trainer:1"
		p := provision{spec: test.spec, hosts: hostsOf("x86_64", "x86_64", "x86_64"), before: test.before}
		err := p.check()
		var taken *engine.ImageTakenError
		switch {
		case test.taken == nil && err != nil, test.taken != nil && !errors.As(err, &taken):
			t.Errorf("%s: got %v", name, err)
		case taken != nil &&
			(!maps.Equal(taken.Taken, test.taken) || taken.Name != "trainer:1" || taken.Wanted != test.id):
			t.Errorf("%s: got %+v", name, taken)
		}
		if p.id != test.id {
			t.Errorf("%s: the image is %q, want %q", name, p.id, test.id)
		}
	}
}

// TestSeveralPlatforms: hosts of several platforms can only have an image that they pull, by an ID that all can have.
func TestSeveralPlatforms(t *testing.T) {
	const several = "aarch64 (gpu2), x86_64 (gpu1, gpu3)"
	for name, test := range map[string]struct {
		spec engine.ImageSpec
		want string
	}{
		"an archive":     {engine.ImageSpec{ID: "sha256:1", Archive: nothing}, "omit archive and build"},
		"a build":        {engine.ImageSpec{Build: &engine.ImageBuild{}}, "omit archive and build"},
		"pulled":         {engine.ImageSpec{}, ""},
		"pulled by all":  {engine.ImageSpec{ID: "reg/trainer@sha256:1"}, ""},
		"pulled by some": {engine.ImageSpec{ID: "sha256:1"}, "terraform apply -replace"},
	} {
		test.spec.Name = "trainer:1"
		p := provision{spec: test.spec, hosts: hostsOf("x86_64", "aarch64", "x86_64")}
		err := p.check()
		if test.want == "" && err != nil || test.want != "" &&
			(err == nil || !strings.Contains(err.Error(), test.want) || !strings.Contains(err.Error(), several)) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestOrigin(t *testing.T) {
	holders := map[string]engine.Image{
		"b": {ID: "sha256:1", Digests: []string{"reg/trainer@sha256:b"}}, "a": {ID: "sha256:1"},
	}
	for name, test := range map[string]struct {
		id      string
		holders map[string]engine.Image
		want    string
	}{
		"a host has it from a registry": {
			"sha256:1111111111111111111111111111111111111111111111111111111111111111", holders, "reg/trainer@sha256:b",
		},
		"nobody has it": {
			"sha256:1111111111111111111111111111111111111111111111111111111111111111", nil, "trainer:1",
		},
		"of several platforms": {
			"reg/trainer@sha256:1111111111111111111111111111111111111111111111111111111111111111", holders,
			"reg/trainer@sha256:1111111111111111111111111111111111111111111111111111111111111111",
		},
	} {
		p := provision{spec: engine.ImageSpec{Name: "trainer:1"}, id: test.id}
		if got := p.origin(test.holders); got != test.want {
			t.Errorf("%s: %s is pulled, want %s", name, got, test.want)
		}
	}
}

func TestBuilt(t *testing.T) {
	const step = `{"stream":"Step 1/2 : FROM scratch\n"}` + "\n"
	long := strings.Repeat(`{"stream":"more\n"}`+"\n", buildTail)
	for name, test := range map[string]struct {
		body, id string
		says     []string
		silent   string // what an error must not contain
	}{
		"built": {body: step + `{"aux":{"ID":"sha256:1"}}` + "\n" + `{"aux":{"ID":"sha256:2"}}` + "\n" +
			`{"stream":"Successfully built 2\n"}`, id: "sha256:2"},
		"failed": {
			body: step + `{"errorDetail":{"message":"COPY failed"},"error":"COPY failed"}`,
			says: []string{"COPY failed; last lines of output:\nStep 1/2 : FROM scratch"},
		},
		"failed at once": {
			body: `{"errorDetail":{"message":"no space"},"error":"no space"}`, says: []string{"no space"},
			silent: "last lines",
		},
		"a long story": {
			body: step + long + `{"errorDetail":{"message":"exit code 1"},"error":"exit code 1"}`,
			says: []string{"exit code 1", "more"}, silent: "Step 1/2",
		},
		"cut off": {body: step, says: []string{"produced no image", "Step 1/2"}},
		"garbled": {body: step + "{", says: []string{"unexpected EOF"}},
	} {
		id, err := built(strings.NewReader(test.body))
		if id != test.id || (err != nil) != (test.says != nil) {
			t.Errorf("%s: got %q (%v)", name, id, err)
		}
		for _, phrase := range test.says {
			if err != nil && !strings.Contains(err.Error(), phrase) {
				t.Errorf("%s: the error %q does not say %q", name, err, phrase)
			}
		}
		if err != nil && test.silent != "" && strings.Contains(err.Error(), test.silent) {
			t.Errorf("%s: the error %q says %q", name, err, test.silent)
		}
	}
}

func nothing() (io.ReadCloser, error) { return nil, errors.New("there is no archive") }
