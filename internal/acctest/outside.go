package acctest

import (
	"fmt"
	"io"
	"strings"
	"testing"
)

const (
	// offered is how much text an outside source sends, mostTaken how much memory reading it may allocate.
	offered   = 1 << 30
	mostTaken = 192 << 20
	// longestError limits the length of the resulting error.
	longestError = 16 << 10
)

// Offer returns a gibibyte of text: a beginning, and then the same text repeated.
func Offer(beginning, text string) io.Reader {
	return io.MultiReader(strings.NewReader(beginning),
		io.LimitReader(Endless(text), offered/int64(len(text))*int64(len(text))))
}

// RefusesMore checks that reading from a source that sends too much allocates little memory, and fails with an error
// that gives the limit in bytes.
func RefusesMore(t *testing.T, read func(*testing.T) error, most int64) {
	t.Helper()
	var err error
	if took := Allocated(func() { err = read(t) }); took > mostTaken {
		t.Errorf("%d MiB were taken", took>>20)
	}
	if want := fmt.Sprintf("more than %d bytes", most); err == nil || !strings.Contains(err.Error(), want) ||
		len(err.Error()) > longestError {
		t.Errorf("the error is %.2000v, want that there are %s", err, want)
	}
}
