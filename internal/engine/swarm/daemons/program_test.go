package daemons

import (
	"strings"
	"testing"
)

// TestNoResidents: a program that isn't for Linux, which hosts run, can't become the image of the controller: an image
// has to be configured.
func TestNoResidents(t *testing.T) {
	for name, test := range map[string]struct{ goos, given, want string }{
		"on Linux":                  {goos: "linux"},
		"on Linux, with an image":   {goos: "linux", given: "registry.example.com/trainyard:1"},
		"on macOS":                  {goos: "darwin", want: "can't be built from this program for macOS"},
		"on macOS, with an image":   {goos: "darwin", given: "registry.example.com/trainyard:1"},
		"on Windows":                {goos: "windows", want: "can't be built from this program for Windows"},
		"on Windows, with an image": {goos: "windows", given: "registry.example.com/trainyard:1"},
	} {
		why := noResidents(test.goos, test.given)
		if (why == "") != (test.want == "") || !strings.Contains(why, test.want) {
			t.Errorf("%s: %q, want %q", name, why, test.want)
		}
		if why != "" && !strings.HasSuffix(why, "set the provider's docker.controller_image to it") {
			t.Errorf("%s, it isn't said what to do: %s", name, why)
		}
	}
}
