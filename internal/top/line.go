package top

import (
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/trainyard/terraform-provider-trainyard/internal/printable"
)

// tone is how a text stands out from others.
type tone int

const (
	plain tone = iota
	faint
	strong
	good
	warning
	bad
)

// span is a text in one tone.
type span struct {
	text string
	tone tone
}

// line is a row of the screen, or a cell of a table. Each of its characters takes one column.
type line []span

// text returns a line in one tone.
func text(s string, t tone) line { return line{{s, t}} }

// String returns the line as plain text.
func (l line) String() string {
	var b strings.Builder
	for _, s := range l {
		b.WriteString(s.text)
	}
	return strings.TrimRight(b.String(), " ")
}

// printable returns the line without control characters for the terminal, at the same width, as it contains texts of
// others.
func (l line) printable() line {
	shown := make(line, len(l))
	for i, s := range l {
		shown[i] = span{printable.Line(s.text), s.tone}
	}
	return shown
}

func (l line) width() int {
	width := 0
	for _, s := range l {
		width += utf8.RuneCountInString(s.text)
	}
	return width
}

// more stands for the rest of a text that was cut off.
const more = "…"

// cut shortens the line to a width.
func (l line) cut(width int) line {
	if l.width() <= width {
		return l
	}
	var part line
	left := width - 1
	for _, s := range l {
		runes := []rune(s.text)
		if len(runes) > left {
			part = append(part, span{string(runes[:max(left, 0)]) + more, s.tone})
			break
		}
		left -= len(runes)
		part = append(part, s)
	}
	return part
}

// padded returns the line with exactly this width, aligned left or right.
func (l line) padded(width int, right bool) line {
	l = l.cut(width)
	space := span{text: strings.Repeat(" ", max(width-l.width(), 0))}
	if right {
		return append(line{space}, l...)
	}
	return append(slices.Clip(l), space)
}

// wrapped breaks a text into lines between words, and within words longer than a line; a width of 0 means unlimited.
func wrapped(s string, width int) []string {
	var lines []string
	var current []rune
	for word := range strings.FieldsSeq(s) {
		runes := []rune(word)
		if len(current) > 0 && width > 0 && len(current)+1+len(runes) > width {
			lines, current = append(lines, string(current)), nil
		}
		if len(current) > 0 {
			current = append(current, ' ')
		}
		current = append(current, runes...)
		for width > 0 && len(current) > width {
			lines, current = append(lines, string(current[:width])), current[width:]
		}
	}
	return append(lines, string(current))
}
