package main

import (
	"encoding/csv"
	"io"
	"strconv"
	"time"
)

// table is a CSV file whose rows are on disk as soon as they are written.
type table struct{ w *csv.Writer }

// newTable begins a table. Without a file, its rows go nowhere.
func newTable(w io.Writer, columns ...string) (*table, error) {
	t := &table{csv.NewWriter(w)}
	return t, t.row(columns...)
}

func (t *table) row(cells ...string) error {
	if err := t.w.Write(cells); err != nil {
		return err
	}
	t.w.Flush()
	return t.w.Error()
}

// number is a number as a cell.
func number(n float64) string { return strconv.FormatFloat(n, 'f', -1, 64) }

// cell is a time as a cell.
func cell(t time.Time) string { return t.UTC().Format(time.RFC3339Nano) }
