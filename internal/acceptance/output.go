//go:build linux

package acceptance

import (
	"regexp"
	"strings"
	"testing"

	"github.com/trainyard/terraform-provider-trainyard/internal/acctest"
)

// Says returns a pattern for a message with these phrases in this order, however its lines are wrapped.
func Says(phrases ...string) *regexp.Regexp {
	patterns := make([]string, len(phrases))
	for i, phrase := range phrases {
		words := strings.Fields(phrase)
		for j, word := range words {
			words[j] = regexp.QuoteMeta(word)
		}
		patterns[i] = strings.Join(words, `\s+`)
	}
	return regexp.MustCompile(`(?s)` + strings.Join(patterns, `.*`))
}

// Refuses runs Terraform, which has to fail with a message that matches.
func Refuses(w *acctest.Workspace, pattern *regexp.Regexp, args ...string) {
	w.Helper()
	output, err := w.Run(args...)
	if err == nil || !pattern.MatchString(output) {
		w.Fatalf("terraform %s: %v, want an error like %q\n%s", strings.Join(args, " "), err, pattern, output)
	}
}

// ExpectSaid fails unless Terraform's output contains these texts, in any order and however its lines are wrapped.
func ExpectSaid(t *testing.T, output string, phrases ...string) {
	t.Helper()
	for _, phrase := range phrases {
		if !Says(phrase).MatchString(Unframed.ReplaceAllString(output, "")) {
			t.Errorf("Terraform does not say %q:\n%s", phrase, output)
		}
	}
}

// Unframed matches the frame that Terraform draws around a warning.
var Unframed = regexp.MustCompile(`[│╷╵]`)
