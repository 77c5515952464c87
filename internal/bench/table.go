//go:build linux

package main

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// table is the answer to a question. The first column is left-aligned, the others are right-aligned.
type table struct {
	head []string
	rows [][]string
}

// add appends a row.
func (t *table) add(cells ...string) { t.rows = append(t.rows, cells) }

// String renders the table, indented, with a rule below its head.
func (t *table) String() string {
	widths := make([]int, len(t.head))
	for _, row := range append([][]string{t.head}, t.rows...) {
		for i, cell := range row {
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	rule := make([]string, len(widths))
	for i, width := range widths {
		rule[i] = strings.Repeat("─", width)
	}
	var b strings.Builder
	for _, row := range append([][]string{t.head, rule}, t.rows...) {
		b.WriteString(" ")
		for i, cell := range row {
			gap := strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell))
			if i == 0 {
				b.WriteString(" " + cell + gap)
			} else {
				b.WriteString("   " + gap + cell)
			}
		}
		b.WriteString("\n")
	}
	return b.String()
}

// note is a line under a table.
type note string

// String renders the line, indented.
func (n note) String() string { return "  " + string(n) + "\n" }

// verdict formats whether a bar is held.
func verdict(held bool) string {
	if held {
		return "held"
	}
	return "MISSED"
}

// count formats a number with separated thousands.
func count(n int) string {
	text := strconv.Itoa(n)
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}

// mebibytes formats a number of bytes.
func mebibytes(bytes uint64) string { return fmt.Sprintf("%.1f MiB", float64(bytes)/(1<<20)) }
