package main

import (
	"encoding/csv"
	"io"
	"strconv"
	"time"
)

// table is a CSV file whose rows are flushed as soon as they are written.
type table struct{ w *csv.Writer }

// newTable starts a table. Without a file, its rows are discarded.
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

// number formats a number for a cell.
func number(n float64) string { return strconv.FormatFloat(n, 'f', -1, 64) }

// cell formats a time for a cell.
func cell(t time.Time) string { return t.UTC().Format(time.RFC3339Nano) }
