package acctest

import (
	"fmt"
	"io"
	"strings"
	"testing"
)

const (
	// offered is how much text a source outside offers, and mostTaken how much memory it may take.
	offered   = 1 << 30
	mostTaken = 192 << 20
	// longestError is how long the error may be that says so.
	longestError = 16 << 10
)

// Offer returns a gibibyte of text, over and over the same, after a beginning.
func Offer(beginning, text string) io.Reader {
	return io.MultiReader(strings.NewReader(beginning), io.LimitReader(Endless(text), offered/int64(len(text))*int64(len(text))))
}

// RefusesMore checks that reading a source that offers too much takes little memory, and fails with the most bytes that
// it may have.
func RefusesMore(t *testing.T, read func(*testing.T) error, most int64) {
	t.Helper()
	var err error
	if took := Allocated(func() { err = read(t) }); took > mostTaken {
		t.Errorf("%d MiB were taken", took>>20)
	}
	if want := fmt.Sprintf("more than %d bytes", most); err == nil || !strings.Contains(err.Error(), want) || len(err.Error()) > longestError {
		t.Errorf("the error is %.2000v, want that there are %s", err, want)
	}
}
