package sshclient

import (
	"regexp"
	"strings"
)

// plain matches words without characters that are special to a shell.
var plain = regexp.MustCompile(`^[A-Za-z0-9_./:@+-]+$`)

// Quote returns a command line for the user's shell on a host, in which each argument is one word. It works for any
// text in a POSIX shell, and in fish and csh for text without backslashes, newlines and exclamation marks.
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
