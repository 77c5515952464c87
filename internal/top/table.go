package top

import "slices"

// column is a column of a table.
type column struct {
	title string
	// right aligns its content right.
	right bool
	// rank is the order in which columns are dropped if there is no room for all: the highest rank first, and 0 never.
	rank int
}

const (
	// gap is the space between two columns.
	gap = 2
	// shortestName is the minimum width left for names in the first column if there is not enough room.
	shortestName = 12
)

// table returns rows as lines under the titles of their columns, with the columns that fit; a width of 0 means
// unlimited.
func table(columns []column, rows [][]line, width int) []line {
	widths := make([]int, len(columns))
	for i, c := range columns {
		widths[i] = text(c.title, plain).width()
		for _, row := range rows {
			widths[i] = max(widths[i], row[i].width())
		}
	}
	shown := fit(columns, widths, width)
	titles := make([]line, len(columns))
	for i, c := range columns {
		titles[i] = text(c.title, faint)
	}
	lines := make([]line, 0, 1+len(rows))
	for _, row := range append([][]line{titles}, rows...) {
		var l line
		for n, i := range shown {
			if n > 0 {
				l = append(l, span{text: "  "})
			}
			l = append(l, row[i].padded(widths[i], columns[i].right)...)
		}
		lines = append(lines, l)
	}
	return lines
}

// fit returns the indexes of the columns that fit, and shortens the first one if the others would not fit.
func fit(columns []column, widths []int, width int) []int {
	var shown []int
	for i := range columns {
		shown = append(shown, i)
	}
	if width == 0 {
		return shown
	}
	excess := func() int {
		sum := -gap
		for _, i := range shown {
			sum += widths[i] + gap
		}
		return sum - width
	}
	for excess() > 0 {
		last := slices.MaxFunc(shown, func(a, b int) int { return columns[a].rank - columns[b].rank })
		if columns[last].rank == 0 {
			widths[0] = max(widths[0]-excess(), min(widths[0], shortestName))
			return shown
		}
		shown = slices.DeleteFunc(shown, func(i int) bool { return i == last })
	}
	return shown
}
