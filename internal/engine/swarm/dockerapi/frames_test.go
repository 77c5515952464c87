package dockerapi

import (
	"io"
	"strings"
	"testing"

	"github.com/docker/docker/pkg/stdcopy"
	"github.com/trainyard/terraform-provider-trainyard/internal/bounded"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
)

// TestDemultiplex: frames written by an Engine are read as written.
func TestDemultiplex(t *testing.T) {
	var written strings.Builder
	for i, text := range []string{"one\n", "", "two\n", strings.Repeat("x", 100_000) + "\n"} {
		kind := stdcopy.Stdout
		if i%2 == 0 {
			kind = stdcopy.Stderr
		}
		_, err := io.WriteString(stdcopy.NewStdWriter(&written, kind), text)
		if err != nil {
			t.Fatal(err)
		}
	}
	var out, complaint strings.Builder
	if err := Demultiplex(&out, &complaint, strings.NewReader(written.String())); err != nil {
		t.Fatal(err)
	}
	if out.String() != strings.Repeat("x", 100_000)+"\n" || complaint.String() != "one\ntwo\n" {
		t.Errorf("%d bytes and %q", out.Len(), complaint.String())
	}
	for name, test := range map[string]struct{ frames, want string }{
		"a header that breaks off": {"\x01\x00\x00", "unexpected EOF"},
		"a frame that breaks off":  {"\x01\x00\x00\x00\x00\x00\x00\x05abc", "unexpected EOF"},
		"an unknown kind":          {"\x07\x00\x00\x00\x00\x00\x00\x01a", "a frame of unknown type 7"},
		"a fault of the Engine":    {"\x03\x00\x00\x00\x00\x00\x00\x06no log", "no log"},
	} {
		if err := Demultiplex(io.Discard, io.Discard, strings.NewReader(test.frames)); err == nil ||
			!strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// FuzzDemultiplex: frames are read as by Docker's own reader, except for truncated streams, which that overlooks.
func FuzzDemultiplex(f *testing.F) {
	f.Add([]byte("\x01\x00\x00\x00\x00\x00\x00\x02a\n\x02\x00\x00\x00\x00\x00\x00\x01b"))
	f.Add([]byte("\x01\x00\x00\x00\xff\xff\xff\xffa\n"))
	f.Add([]byte("\x03\x00\x00\x00\x00\x00\x00\x05fault"))
	f.Add([]byte("\x04\x00\x00\x00\x00\x00\x00\x00"))
	f.Add([]byte("\x00\x01\x02\x03\x00\x00\x00\x00\x01\x00"))
	f.Fuzz(func(t *testing.T, frames []byte) {
		out, complaint := &bounded.Buffer{Most: 1 << 10}, &bounded.Tail{Most: 1 << 10}
		err := Demultiplex(out, complaint, strings.NewReader(string(frames)))
		lines := engine.LogOptions{Tail: 3}.Lines()
		_ = Demultiplex(lines, lines, strings.NewReader(string(frames)))
		if n := len(lines.All()); n > 3 {
			t.Errorf("%d lines", n)
		}
		if err != nil || len(frames) > 1<<10 {
			return
		}
		var theirOut, theirComplaint strings.Builder
		if _, err := stdcopy.StdCopy(&theirOut, &theirComplaint, strings.NewReader(string(frames))); err != nil {
			t.Errorf("Docker's own reader fails with %v", err)
		}
		if theirOut.String() != string(out.Bytes()) {
			t.Errorf("it is %q, and to Docker's own reader %q", out.Bytes(), theirOut.String())
		}
	})
}
