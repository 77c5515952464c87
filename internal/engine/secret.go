package engine

import (
	"fmt"
	"io"
)

// Secret is a text that doesn't print: not by any verb of fmt, in no log, not as JSON. Its value is string(secret).
type Secret string

// String returns a placeholder, and nothing for an empty secret.
func (s Secret) String() string {
	if s == "" {
		return ""
	}
	return "(redacted)"
}

// Format prints what String returns, whatever the verb.
func (s Secret) Format(f fmt.State, _ rune) {
	// A failed write is the printer's to notice.
	_, _ = io.WriteString(f, s.String())
}

// MarshalText returns what String does, for logs and JSON.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }
