package domain

import (
	"fmt"
	"slices"
	"strings"
)

// oneOf adds a problem if value is set and not among those allowed.
func oneOf[T ~string](ps *Problems, path Path, what string, value T, allowed []T) {
	if value != "" && !slices.Contains(allowed, value) {
		ps.Add(path, "Unknown "+what, "unknown %s %q; use one of %s", what, value, Quoted(allowed))
	}
}

func notNegative(ps *Problems, path Path, d *Duration) {
	if d != nil && *d < 0 {
		ps.Add(path, "Invalid duration", "must be \"0s\" or more, got %s", *d)
	}
}

// Quoted lists names in double quotes, separated by commas.
func Quoted[T ~string](names []T) string {
	parts := make([]string, len(names))
	for i, name := range names {
		parts[i] = fmt.Sprintf("%q", string(name))
	}
	return strings.Join(parts, ", ")
}
