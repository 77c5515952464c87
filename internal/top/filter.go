package top

import (
	"slices"
	"strings"
)

// matches reports whether a row contains the filter.
func (s state) matches(row []line) bool {
	filter := strings.ToLower(s.filter)
	return slices.ContainsFunc(row,
		func(cell line) bool { return strings.Contains(strings.ToLower(cell.String()), filter) })
}

// matching returns the rows that contain the filter.
func (s state) matching(rows [][]line) [][]line {
	return slices.DeleteFunc(rows, func(row []line) bool { return !s.matches(row) })
}
