package top

import (
	"slices"
	"strings"

	"github.com/clipperhouse/displaywidth"

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

// line is a row of the screen, or a cell of a table.
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

// printable returns the line without control characters for the terminal, as it contains texts of others. Its width
// stays the same.
func (l line) printable() line {
	shown := make(line, len(l))
	for i, s := range l {
		shown[i] = span{printable.Line(s.text), s.tone}
	}
	return shown
}

// columns returns how many columns a text takes on the screen, once it is printable: two for a wide character, none for
// one that is combined with the character before it. The screen measures in the same way.
func columns(s string) int { return displaywidth.String(printable.Line(s)) }

// split splits a printable text after as many characters as fit into a width, and after no fewer than least.
func split(s string, width, least int) (fits, rest string) {
	end, used, count := 0, 0, 0
	for g := displaywidth.StringGraphemes(s); g.Next(); count++ {
		used += g.Width()
		if count >= least && used > width {
			break
		}
		end += len(g.Value())
	}
	return s[:end], s[end:]
}

func (l line) width() int {
	width := 0
	for _, s := range l {
		width += columns(s.text)
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
	left := width - columns(more)
	for _, s := range l.printable() {
		fits, rest := split(s.text, left, 0)
		if rest != "" {
			part = append(part, span{fits + more, s.tone})
			break
		}
		left -= columns(s.text)
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
	current := ""
	for word := range strings.FieldsSeq(s) {
		if current != "" && width > 0 && columns(current)+1+columns(word) > width {
			lines, current = append(lines, current), ""
		}
		if current != "" {
			current += " "
		}
		parts := broken(current+word, width)
		last := len(parts) - 1
		lines, current = append(lines, parts[:last]...), parts[last]
	}
	return append(lines, current)
}

// broken returns a text, made printable, in lines that end where the screen does; a width of 0 means unlimited. A
// character that is wider than the screen has a line of its own.
func broken(s string, width int) []string {
	var parts []string
	s = printable.Line(s)
	for width > 0 {
		fits, rest := split(s, width, 1)
		if rest == "" {
			break
		}
		parts, s = append(parts, fits), rest
	}
	return append(parts, s)
}
