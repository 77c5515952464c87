//go:build linux

package main

import "strings"

// markdown is a table for a README. The first column is left-aligned, the others are right-aligned.
type markdown struct {
	title string
	table
}

// String renders the table below its title.
func (m *markdown) String() string {
	var b strings.Builder
	row := func(cells []string) { b.WriteString("| " + strings.Join(cells, " | ") + " |\n") }
	b.WriteString("**" + m.title + "**\n\n")
	row(m.head)
	b.WriteString("|---" + strings.Repeat("|--:", len(m.head)-1) + "|\n")
	for _, cells := range m.rows {
		row(cells)
	}
	return b.String() + "\n"
}
