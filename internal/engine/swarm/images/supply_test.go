package images

import (
	"context"
	"errors"
	"io"
	"os"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/docker/docker/client"

	"github.com/trainyard/terraform-provider-trainyard/internal/acctest"
	"github.com/trainyard/terraform-provider-trainyard/internal/bounded"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/swarm/swarmtest"
)

// FuzzBuilt: whatever an Engine reports of a build, the result is an image, or an error with only the end of the
// output.
func FuzzBuilt(f *testing.F) {
	f.Add(`{"stream":"Step 1/2 : FROM scratch\n"}` + "\r\n" + `{"aux":{"ID":"sha256:0123"}}` + "\r\n" +
		`{"stream":"Successfully built 0123\n"}`)
	f.Add(`{"stream":"a\n"}{"errorDetail":{"code":1,"message":"it broke"},"error":"it broke"}`)
	f.Add(`{"aux":{"ID":7}}{"aux":[]}{"aux":null}`)
	f.Add(`{"stream":"` + strings.Repeat(`\n`, 100) + `"}{"stream":`)
	f.Add(`[]`)
	f.Add("")
	f.Fuzz(func(t *testing.T, text string) {
		id, err := built(strings.NewReader(text))
		if (id == "") != (err != nil) {
			t.Errorf("the image is %q: %v", id, err)
		}
		if failed := done(strings.NewReader(text)); failed != nil && err == nil {
			t.Errorf("a build without an error reports %v", failed)
		}
	})
}

// TestSupplyOutside: memory for an Engine's messages is bounded, and the error says if there are more.
func TestSupplyOutside(t *testing.T) {
	if !acctest.Alone(t) {
		return
	}
	build := func(beginning string) func(*testing.T) error {
		return func(*testing.T) error { _, err := built(acctest.Offer(beginning, "x")); return err }
	}
	for name, read := range map[string]func(*testing.T) error{
		"a build":          build(`{"stream":"`),
		"a build's result": build(`{"aux":{"ID":"`),
		"a pull":           func(*testing.T) error { return done(acctest.Offer(`{"status":"`, "x")) },
	} {
		t.Run(name, func(t *testing.T) { acctest.RefusesMore(t, read, bounded.Message) })
	}
	// Only the end of a long output is kept.
	t.Run("a long build", func(t *testing.T) {
		id, err := built(io.MultiReader(
			io.LimitReader(acctest.Endless(`{"stream":"`+strings.Repeat("x", 1000)+`"}`+"\r\n"), 64*1015<<8),
			strings.NewReader(`{"aux":{"ID":"sha256:a"}}`),
		))
		if err != nil || id != "sha256:a" {
			t.Errorf("the image is %q: %v", id, err)
		}
	})
}

// saving is an Engine that saves an image as this text.
type saving struct {
	client.APIClient
	content io.Reader
}

func (s saving) ImageSave(context.Context, []string, ...client.ImageSaveOption) (io.ReadCloser, error) {
	return io.NopCloser(s.content), nil
}

// TestSaved: nothing is left of an archive once it is closed, nor of one that broke off.
func TestSaved(t *testing.T) {
	folder := t.TempDir()
	t.Setenv("TMPDIR", folder)
	t.Setenv("TMP", folder) // for Windows
	files := func() int {
		entries, err := os.ReadDir(folder)
		swarmtest.Must(t, err)
		return len(entries)
	}
	whole := saving{content: strings.NewReader("layers")}
	archive, size, err := saved(t.Context(), imageHost{docker: whole}, "sha256:a")
	swarmtest.Must(t, err)
	text, err := io.ReadAll(io.NewSectionReader(archive, 0, size))
	if err != nil || string(text) != "layers" {
		t.Errorf("saved is %q (%v)", text, err)
	}
	swarmtest.Must(t, archive.Close())
	if left := files(); left != 0 {
		t.Errorf("%d files are left", left)
	}
	broken := saving{content: io.MultiReader(strings.NewReader("lay"), iotest.ErrReader(errors.New("it broke")))}
	if _, _, err := saved(t.Context(), imageHost{docker: broken}, "sha256:a"); err == nil {
		t.Error("a broken archive is saved")
	}
	if left := files(); left != 0 {
		t.Errorf("%d files are left", left)
	}
}
