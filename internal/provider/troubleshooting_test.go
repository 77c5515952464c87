package provider

import (
	"strings"
	"testing"

	"github.com/trainyard/terraform-provider-trainyard/internal/provider/providertest"
)

func TestLinked(t *testing.T) {
	for name, c := range map[string]struct{ summary, detail, want string }{
		"by its summary": {"Not enough GPUs", "0 of 2 are free.", "#not-enough-gpus"},
		"by a part of its detail": {
			"Unable to read cluster", `lab: ssh://ops@gpu1: the host key of "gpu1" is not known`,
			"#the-host-key-of--is-not-known",
		},
		"the longer of two": {
			"Member failed", "job-worker-0: exit code 137 (signal 9)", "#exit-code-137-signal-9",
		},
		"parts in another order": {"x", "is not known: the host key of", ""},
		"none":                   {"Invalid name", "got X", ""},
	} {
		t.Run(name, func(t *testing.T) {
			got := linked("guide", c.summary, c.detail)
			if c.want == "" && got != c.detail {
				t.Errorf("it links to %q", got)
			}
			if c.want != "" && got != c.detail+"\n\nSee guide"+c.want {
				t.Errorf("it says %q, want a link to %s", got, c.want)
			}
		})
	}
}

// TestEntries checks that the guide has many sections that messages link to, each with an anchor of its own.
func TestEntries(t *testing.T) {
	known := map[string]bool{}
	for _, e := range entries() {
		if known[e.anchor] || len(e.parts) == 0 || strings.Trim(e.anchor, "-") == "" {
			t.Errorf("%q has the anchor %q", e.parts, e.anchor)
		}
		known[e.anchor] = true
	}
	if len(known) < 100 {
		t.Errorf("messages link to %d sections", len(known))
	}
}

// TestTroubleshootingOfVersion: a release links to the guide as it was then, and a development build to the latest.
func TestTroubleshootingOfVersion(t *testing.T) {
	const registry = "https://registry.terraform.io/providers/trainyard/trainyard/"
	for version, want := range map[string]string{
		"0.1.0": "0.1.0", "1.20.3-rc.1": "1.20.3-rc.1",
		"dev": "latest", "": "latest", "0.1": "latest", "0.1.0/x": "latest",
	} {
		server, is := NewServer(version, (&providertest.Stub{}).Registry()).(printableServer)
		if !is {
			t.Fatal("the server links to nothing")
		}
		if want = registry + want + "/docs/guides/troubleshooting"; server.guide != want {
			t.Errorf("version %q links to %s, want %s", version, server.guide, want)
		}
	}
}
