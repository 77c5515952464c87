//go:build linux

package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/trainyard/terraform-provider-trainyard/internal/autoscale"
)

// TestPictures: each picture is small, and the guide shows exactly these.
func TestPictures(t *testing.T) {
	const most = 30_000 // bytes
	folder := t.TempDir()
	if err := draw(folder); err != nil {
		t.Fatal(err)
	}
	files, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	var drawn []string
	for _, file := range files {
		drawn = append(drawn, file.Name())
		picture, err := os.ReadFile(filepath.Join(folder, file.Name()))
		if err != nil || len(picture) > most || !strings.HasPrefix(string(picture), "<svg ") {
			t.Errorf("%s (%v) has %d bytes, of at most %d: %.20q", file.Name(), err, len(picture), most, picture)
		}
	}
	guide, err := os.ReadFile("../../templates/guides/autoscaling.md")
	if err != nil {
		t.Fatal(err)
	}
	var shown []string
	// The registry doesn't show pictures with relative addresses, and GitHub serves SVG files as images only if asked
	// to sanitise them.
	const address = "](https://raw.githubusercontent.com/trainyard/terraform-provider-trainyard/main/docs/guides/autoscaling/"
	for part := range strings.SplitSeq(string(guide), address) {
		if name, _, found := strings.Cut(part, "?sanitize=true)"); found && strings.HasSuffix(name, ".svg") {
			shown = append(shown, name)
		}
	}
	if relative := strings.Count(string(guide), "](autoscaling/"); relative > 0 {
		t.Errorf("%d pictures have relative addresses", relative)
	}
	slices.Sort(shown)
	if len(drawn) == 0 || !slices.Equal(drawn, shown) {
		t.Errorf("drawn are %q, and the guide shows %q", drawn, shown)
	}
}

// TestDrawnCrowd: a crowd finds too few members for as long as the guide says, with and without a forecast.
func TestDrawnCrowd(t *testing.T) {
	want := map[string]time.Duration{"crowd-target": 18 * time.Minute, "crowd-forecast": 8 * time.Minute}
	for _, d := range drawings() {
		minutes, wanted := want[d.name]
		if !wanted {
			continue
		}
		delete(want, d.name)
		course, err := autoscale.Backtest(d.policy, d.trace, d.model)
		if err != nil {
			t.Fatal(err)
		}
		if off := course.Under - minutes; off.Abs() > time.Minute/2 {
			t.Errorf("%s has too few members for %s, and the guide says %s", d.name, course.Under, minutes)
		}
	}
	if len(want) > 0 {
		t.Errorf("%v are not drawn", want)
	}
}
