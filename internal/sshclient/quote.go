package sshclient

import (
	"regexp"
	"strings"
)

// plain are the words that mean themselves in any shell.
var plain = regexp.MustCompile(`^[A-Za-z0-9_./:@+-]+$`)

// Quote returns a command line for the user's shell on a host, of which each argument is one word. A POSIX shell takes
// any text so; fish and csh take what has no backslash, no newline and no exclamation mark.
func Quote(words ...string) string {
	quoted := make([]string, len(words))
	for i, word := range words {
		if !plain.MatchString(word) {
			word = "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
		}
		quoted[i] = word
	}
	return strings.Join(quoted, " ")
}
