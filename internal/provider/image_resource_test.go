package provider

import (
	"errors"
	"fmt"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"

	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
	"github.com/trainyard/terraform-provider-trainyard/internal/provider/resourcekit"
)

func TestReadOfImage(t *testing.T) {
	file, id := archiveFile(t, "")
	for what, test := range map[string]struct {
		found map[string]engine.Image
		err   error
		gone  bool
	}{
		"gone everywhere":       {gone: true},
		"gone with the cluster": {err: fmt.Errorf("cluster: %w", engine.ErrNotFound), gone: true},
		"a host out of reach":   {err: fmt.Errorf("host gpu2 %w", engine.ErrUnreachable)},
	} {
		l := newImageLab(t, "gpu1", "gpu2")
		state := l.applied(l.archive(file), nil)
		l.engine.found, l.engine.findErr = test.found, test.err
		found, diagnostics := l.read(theImage, state)
		if (found == nil) != test.gone || (len(diagnostics) == 0) != test.gone {
			t.Errorf("%s: read as %v (%v)", what, found, details(diagnostics))
		}
	}
	l := newImageLab(t, "gpu1", "gpu2")
	l.engine.found = map[string]engine.Image{"gpu1": known(id), "gpu2": known("sha256:other")}
	if _, diagnostics := l.read(theImage, l.image(nil)); len(diagnostics) != 1 ||
		!strings.Contains(diagnostics[0].Detail, "host gpu2 has sha256:other") {
		t.Errorf("an import of hosts that differ: %v", details(diagnostics))
	}
}

// What is applied is what was planned.
func TestImageThatChangedSinceThePlan(t *testing.T) {
	file, _ := archiveFile(t, "")
	folder := buildFolder(t)
	l := newImageLab(t, "gpu1")
	for what, test := range map[string]struct {
		config map[string]tftypes.Value
		change func()
	}{
		"archive": {l.archive(file), func() { archiveFile(t, file) }},
		"build":   {l.build(folder), func() { writeFile(t, filepath.Join(folder, "train.py"), "pass\n") }},
	} {
		planned, diagnostics := l.plan(theImage, test.config, nil)
		fatalOn(t, nil, diagnostics)
		test.change()
		state, diagnostics := l.apply(theImage, test.config, nil, planned)
		if len(diagnostics) != 1 || !strings.Contains(diagnostics[0].Detail, "has changed since it was planned") ||
			state != nil || len(l.engine.provided) > 0 {
			t.Errorf("%s: got %v (%v), %d provided", what, state, details(diagnostics), len(l.engine.provided))
		}
	}
}

// What a failed apply has brought to hosts is in the state, and nothing else is.
func TestImageThatFails(t *testing.T) {
	file, id := archiveFile(t, "")
	other, otherID := archiveFile(t, "")
	failure := errors.New("disk full")
	l := newImageLab(t, "gpu1", "gpu2")
	for what, test := range map[string]struct {
		config  map[string]tftypes.Value
		failure error
		found   map[string]engine.Image
		want    map[string]string
	}{
		"nothing came": {l.archive(file), failure, nil, nil},
		"a host has it": {
			l.archive(file), failure, map[string]engine.Image{"gpu1": known(id), "gpu2": known("sha256:other")},
			map[string]string{"gpu1": id},
		},
		"the name is taken": {
			l.archive(file), &engine.ImageTakenError{Name: "trainer:1"},
			map[string]engine.Image{"gpu1": known(id), "gpu2": known("sha256:other")}, nil,
		},
		"what others pulled": {l.image(nil), failure, map[string]engine.Image{"gpu1": known("sha256:other")}, nil},
	} {
		l.engine.provide = func(engine.ImageSpec) error { l.engine.found = test.found; return test.failure }
		planned, diagnostics := l.plan(theImage, test.config, nil)
		fatalOn(t, nil, diagnostics)
		state, diagnostics := l.apply(theImage, test.config, nil, planned)
		if len(diagnostics) != 1 || (state == nil) != (test.want == nil) {
			t.Errorf("%s: got %v (%v)", what, state, details(diagnostics))
		}
		if state != nil && !l.model(state).Hosts.Equal(resourcekit.StringMap(test.want)) {
			t.Errorf("%s: the state has %s", what, l.model(state).Hosts)
		}
	}

	l.engine.provide = nil
	state := l.applied(l.archive(file), nil)
	l.engine.provide = func(engine.ImageSpec) error {
		l.engine.found = map[string]engine.Image{"gpu1": known(otherID), "gpu2": known(id)}
		return failure
	}
	planned, diagnostics := l.plan(theImage, l.archive(other), state)
	fatalOn(t, nil, diagnostics)
	state, diagnostics = l.apply(theImage, l.archive(other), state, planned)
	if got := l.model(state); len(diagnostics) != 1 || got.ImageID.ValueString() != id ||
		!got.Hosts.Equal(resourcekit.StringMap(map[string]string{"gpu1": otherID, "gpu2": id})) {
		t.Errorf("half an update: %s on %s (%v)", got.ImageID, got.Hosts, details(diagnostics))
	}
	l.engine.provide = nil
	l.applied(l.archive(other), l.refreshed(state))
	last := l.engine.provided[len(l.engine.provided)-1]
	if want := map[string]string{"gpu1": otherID, "gpu2": id}; !reflect.DeepEqual(last.Replaces, want) ||
		last.ID != otherID {
		t.Errorf("the next apply replaces %v by %s", last.Replaces, last.ID)
	}
}

func TestImageThatIsLeft(t *testing.T) {
	file, _ := archiveFile(t, "")
	l := newImageLab(t, "gpu1")
	state := l.applied(l.archive(file), nil)
	l.engine.left = map[string]string{"gpu1": "container 123 uses it"}
	state, diagnostics := l.apply(theImage, nil, state, nil)
	if state != nil || len(diagnostics) != 1 || diagnostics[0].Severity != tfprotov6.DiagnosticSeverityWarning ||
		!strings.Contains(diagnostics[0].Detail, "Host gpu1 keeps \"trainer:1\": container 123 uses it.") {
		t.Errorf("got %v (%v)", state, details(diagnostics))
	}
}
