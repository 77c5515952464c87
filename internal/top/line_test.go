package top

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/trainyard/terraform-provider-trainyard/internal/acctest"
)

// TestColumns checks that wide characters take two columns, combined ones none, and replaced ones one.
func TestColumns(t *testing.T) {
	for s, want := range map[string]int{
		"": 0, "gpu1": 4, "10 °C – █░…": 11, "日本": 4, "cafe\u0301": 4, "👩‍🔬": 2, "\x1b[2J": 4, "\u202e": 1, "\r\n": 2,
	} {
		if got := columns(s); got != want {
			t.Errorf("%q takes %d columns, want %d", s, got, want)
		}
	}
}

func TestCut(t *testing.T) {
	for _, c := range []struct {
		line  line
		width int
		want  string
	}{
		{text("job-worker", plain), 10, "job-worker"},
		{text("job-worker", plain), 9, "job-work…"},
		{text("日本語", plain), 6, "日本語"},
		{text("日本語", plain), 5, "日本…"},
		{text("日本語", plain), 4, "日…"},
		{text("日本語", plain), 1, "…"},
		{line{{"日", strong}, {"本", faint}}, 3, "日…"},
		{text("e\u0301e\u0301e\u0301", plain), 2, "e\u0301…"},
	} {
		if got := c.line.cut(c.width).String(); got != c.want {
			t.Errorf("%q in %d columns: %q, want %q", c.line, c.width, got, c.want)
		}
	}
}

// TestTableOfWideNames checks that columns after wide names are aligned.
func TestTableOfWideNames(t *testing.T) {
	rows := [][]line{{text("日本", plain), text("7", plain)}, {text("gpu", plain), text("42", plain)}}
	var got []string
	for _, l := range table([]column{{title: "HOST"}, {title: "GPUS", right: true}}, rows, 0) {
		got = append(got, l.String())
	}
	if diff := cmp.Diff([]string{"HOST  GPUS", "日本     7", "gpu     42"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestWrapped(t *testing.T) {
	for _, c := range []struct {
		text  string
		width int
		want  []string
	}{
		{"", 5, []string{""}},
		{"one two  three", 0, []string{"one two three"}},
		{"one two three", 7, []string{"one two", "three"}},
		{"to unix:///run/docker.sock", 10, []string{"to", "unix:///ru", "n/docker.s", "ock"}},
		{"–– ––", 2, []string{"––", "––"}},
		{"日本 語", 5, []string{"日本", "語"}},
		{"日本語", 1, []string{"日", "本", "語"}},
	} {
		if diff := cmp.Diff(c.want, wrapped(c.text, c.width)); diff != "" {
			t.Errorf("%q in %d (-want +got):\n%s", c.text, c.width, diff)
		}
	}
}

// TestBrokenAtWideCharacters checks that no part of a log line with wide characters ends beyond the screen.
func TestBrokenAtWideCharacters(t *testing.T) {
	want := []string{strings.Repeat("日", 40), strings.Repeat("日", 20)}
	if diff := cmp.Diff(want, broken(strings.Repeat("日", 60), 80)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestWidthProperties checks that texts are broken and cut without losing or exceeding anything.
func TestWidthProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := acctest.Hostile().Draw(t, "text") + rapid.StringMatching(`[a日é\x{301}\x{fe0f}👩\x{200d}]*`).Draw(t, "wide")
		width := rapid.IntRange(2, 20).Draw(t, "width")
		parts := broken(s, width)
		for _, part := range parts {
			if columns(part) > width {
				t.Fatalf("%q is wider than %d", part, width)
			}
		}
		if got, want := strings.Join(parts, ""), strings.Join(broken(s, 0), ""); got != want {
			t.Fatalf("%q became %q", want, got)
		}
		if l := text(s, plain).padded(width, false); l.width() != width {
			t.Fatalf("%q takes %d columns, want %d", l, l.width(), width)
		}
	})
}
