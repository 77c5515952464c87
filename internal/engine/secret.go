package engine

import (
	"fmt"
	"io"
)

// Secret is a text that doesn't print: not by any verb of fmt, in no log, not as JSON. Its value is string(secret).
type Secret string

// String returns a placeholder, or nothing for an empty secret.
func (s Secret) String() string {
	if s == "" {
		return ""
	}
	return "(redacted)"
}

// Format prints the result of String, whatever the verb.
func (s Secret) Format(f fmt.State, _ rune) {
	// The printer notices a failed write.
	_, _ = io.WriteString(f, s.String())
}

// MarshalText returns the result of String, for logs and JSON.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }
