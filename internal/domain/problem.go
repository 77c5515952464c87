package domain

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Key is a step of a [Path] into a map, such as the role's name in roles["worker"].
type Key string

// Path leads to an attribute of a specification. Its steps are a string (an attribute's name), a [Key] (an element of a
// map) or an int (an element of a list).
type Path []any

// At returns the path with further steps; the receiver is not changed.
func (p Path) At(steps ...any) Path {
	return append(slices.Clip(p), steps...)
}

// String formats the path as a Terraform configuration would: roles["worker"].port.
func (p Path) String() string {
	var b strings.Builder
	for _, step := range p {
		switch s := step.(type) {
		case Key:
			fmt.Fprintf(&b, "[%q]", string(s))
		case int:
			b.WriteString("[" + strconv.Itoa(s) + "]")
		default:
			if b.Len() > 0 {
				b.WriteByte('.')
			}
			fmt.Fprint(&b, s)
		}
	}
	return b.String()
}

// Problem is one reason why a specification is rejected or, as a warning, is accepted but will not do everything it
// says.
type Problem struct {
	// Path leads to the attribute at fault; empty if it is no single attribute.
	Path Path
	// Inputs are the attributes that decide whether there is a problem; nil means Path alone.
	Inputs []Path
	// Summary names the fault in a few words.
	Summary string
	// Detail holds the value, what is allowed, and what to do next.
	Detail string
	// Warning marks a problem that does not stop the apply.
	Warning bool
}

// Error makes a Problem usable as an error.
func (p Problem) Error() string {
	if len(p.Path) == 0 {
		return p.Summary + ": " + p.Detail
	}
	return p.Path.String() + ": " + p.Summary + ": " + p.Detail
}

// Problems lists faults in the order in which they were found.
type Problems []Problem

// Add appends an error.
func (ps *Problems) Add(path Path, summary, detail string, args ...any) {
	*ps = append(*ps, Problem{Path: path, Summary: summary, Detail: fmt.Sprintf(detail, args...)})
}

// DecidedBy sets the Inputs of the problem that was added last.
func (ps Problems) DecidedBy(inputs []Path) { ps[len(ps)-1].Inputs = inputs }

// Warn appends a warning.
func (ps *Problems) Warn(path Path, summary, detail string, args ...any) {
	*ps = append(*ps, Problem{Path: path, Summary: summary, Detail: fmt.Sprintf(detail, args...), Warning: true})
}

// Certain returns the problems that remain whatever the values of the unknown attributes turn out to be.
func (ps Problems) Certain(unknown []Path) Problems {
	var certain Problems
	for _, p := range ps {
		inputs := p.Inputs
		if len(inputs) == 0 {
			inputs = []Path{p.Path}
		}
		if !slices.ContainsFunc(inputs, func(input Path) bool { return slices.ContainsFunc(unknown, input.Touches) }) {
			certain = append(certain, p)
		}
	}
	return certain
}

// Touches reports whether one path leads to a part of the other. The parts of an element of a map do not touch the
// element, which is known by its key alone.
func (p Path) Touches(other Path) bool {
	shared := min(len(p), len(other))
	if !slices.Equal(p[:shared], other[:shared]) {
		return false
	}
	if len(other) <= len(p) || len(p) == 0 {
		return true
	}
	_, element := p[len(p)-1].(Key)
	return !element
}

// Distinct returns the problems without repetitions at the same attribute.
func (ps Problems) Distinct() Problems {
	seen := map[[3]string]bool{}
	return slices.DeleteFunc(slices.Clone(ps), func(p Problem) bool {
		key := [3]string{p.Path.String(), p.Summary, p.Detail}
		repeated := seen[key]
		seen[key] = true
		return repeated
	})
}

// Err returns the errors among the problems as one error of type Problems; nil if there are only warnings.
func (ps Problems) Err() error {
	var faults Problems
	for _, p := range ps {
		if !p.Warning {
			faults = append(faults, p)
		}
	}
	if len(faults) == 0 {
		return nil
	}
	return faults
}

// Error lists the problems, one per line.
func (ps Problems) Error() string {
	lines := make([]string, len(ps))
	for i, p := range ps {
		lines[i] = p.Error()
	}
	return strings.Join(lines, "\n")
}
