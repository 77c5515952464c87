package provider

import (
	"strings"
	"testing"
)

func TestLinked(t *testing.T) {
	for name, c := range map[string]struct{ summary, detail, want string }{
		"by its summary":          {"Not enough GPUs", "0 of 2 are free.", "#not-enough-gpus"},
		"by a part of its detail": {"Unable to read cluster", `lab: ssh://ops@gpu1: the host key of "gpu1" is not known`, "#the-host-key-of--is-not-known"},
		"the longer of two":       {"Member failed", "job-worker-0: exit code 137 (signal 9)", "#exit-code-137-signal-9"},
		"parts in another order":  {"x", "is not known: the host key of", ""},
		"none":                    {"Invalid name", "got X", ""},
	} {
		t.Run(name, func(t *testing.T) {
			got := linked(c.summary, c.detail)
			if c.want == "" && got != c.detail {
				t.Errorf("it links to %q", got)
			}
			if c.want != "" && got != c.detail+"\n\nSee "+troubleshooting+c.want {
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
