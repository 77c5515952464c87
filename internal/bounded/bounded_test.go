package bounded_test

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"

	"github.com/trainyard/terraform-provider-trainyard/internal/acctest"
	"github.com/trainyard/terraform-provider-trainyard/internal/bounded"
)

// isTooMuch fails unless an error says that there is more than this many bytes.
func isTooMuch(t *testing.T, err error, most int64) {
	t.Helper()
	var tooMuch *bounded.Error
	if !errors.As(err, &tooMuch) || tooMuch.Most != most || err.Error() != fmt.Sprintf("more than %d bytes", most) {
		t.Errorf("the error is %v, want one about more than %d bytes", err, most)
	}
}

func TestReadAll(t *testing.T) {
	for size, fits := range map[int]bool{0: true, 9: true, 10: true, 11: false, 1000: false} {
		text := strings.Repeat("x", size)
		for name, r := range map[string]io.Reader{
			"at once": strings.NewReader(text), "by bytes": iotest.OneByteReader(strings.NewReader(text)),
			"with its end": iotest.DataErrReader(strings.NewReader(text)),
		} {
			got, err := bounded.ReadAll(r, 10)
			switch {
			case fits && (err != nil || string(got) != text):
				t.Errorf("of %d bytes %s, %q is read: %v", size, name, got, err)
			case !fits && string(got) != text[:10]:
				t.Errorf("of %d bytes %s, %q is read", size, name, got)
			case !fits:
				isTooMuch(t, err, 10)
			}
		}
	}
	broken := errors.New("broken")
	if _, err := bounded.ReadAll(iotest.ErrReader(broken), 10); !errors.Is(err, broken) {
		t.Errorf("what breaks off ends with %v", err)
	}
	// Reading on after the error returns no more data.
	r := bounded.Reader(strings.NewReader("abc"), 1)
	for range 3 {
		if got, err := io.ReadAll(r); len(got) > 1 {
			t.Errorf("%q is read: %v", got, err)
		} else {
			isTooMuch(t, err, 1)
		}
	}
}

func TestBuffer(t *testing.T) {
	b := &bounded.Buffer{Most: 4}
	for _, text := range []string{"ab", "", "cd"} {
		if n, err := io.WriteString(b, text); n != len(text) || err != nil || b.Err() != nil {
			t.Errorf("%q: %d, %v, %v", text, n, err, b.Err())
		}
	}
	for _, text := range []string{"e", ""} {
		_, err := io.WriteString(b, text)
		isTooMuch(t, err, 4)
		isTooMuch(t, b.Err(), 4)
	}
	if got := string(b.Bytes()); got != "abcd" {
		t.Errorf("%q is kept", got)
	}
}

func TestTail(t *testing.T) {
	for name, test := range map[string]struct {
		written        []string
		text, lastLine string
	}{
		"nothing":             {},
		"less than fits":      {[]string{"a\n", "b"}, "a\nb", "b"},
		"as much as fits":     {[]string{"0123", "4567"}, "01234567", "01234567"},
		"more":                {[]string{"0123", "4567", "89"}, "23456789", "23456789"},
		"much more at once":   {[]string{"01", "0123456789abcdef"}, "89abcdef", "89abcdef"},
		"half a character":    {[]string{"éaaaaaaa"}, "\uFFFDaaaaaaa", "\uFFFDaaaaaaa"},
		"empty lines":         {[]string{"a\n b \n\n"}, "a\n b", "b"},
		"nothing but newline": {[]string{"\n\n"}, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			tail := &bounded.Tail{Most: 8}
			for _, text := range test.written {
				if n, err := io.WriteString(tail, text); n != len(text) || err != nil {
					t.Errorf("%q: %d, %v", text, n, err)
				}
			}
			if tail.String() != test.text || tail.LastLine() != test.lastLine {
				t.Errorf("%q is kept, with the last line %q", tail.String(), tail.LastLine())
			}
		})
	}
}

func TestLines(t *testing.T) {
	long := strings.Repeat("x", bounded.LogLine)
	for name, test := range map[string]struct {
		text string
		tail int
		want []string
	}{
		"nothing":               {"", 0, nil},
		"an empty line":         {"\n", 0, []string{""}},
		"two":                   {"a\nb\n", 0, []string{"a", "b"}},
		"one that has no end":   {"a\nb", 0, []string{"a", "b"}},
		"ends of DOS":           {"a\r\n\r\nb\r", 0, []string{"a", "", "b"}},
		"the last ones":         {"a\nb\nc\nd\n", 2, []string{"c", "d"}},
		"the last one, no end":  {"a\nb\nc", 1, []string{"c"}},
		"fewer than there are":  {"a\n", 5, []string{"a"}},
		"a long one":            {long + "\nb\n", 0, []string{long, "b"}},
		"one that is too long":  {long + "yz\nb\n", 0, []string{long + "…", "b"}},
		"it ends in the middle": {long[1:] + "é\nb\n", 0, []string{long[1:] + "…", "b"}},
	} {
		for kind, size := range map[string]int{"at once": len(test.text), "by parts": 7} {
			t.Run(name+" "+kind, func(t *testing.T) {
				l := &bounded.Lines{Tail: test.tail, Most: 1 << 20}
				for rest := test.text; rest != ""; rest = rest[min(size, len(rest)):] {
					if _, err := io.WriteString(l, rest[:min(size, len(rest))]); err != nil {
						t.Fatal(err)
					}
				}
				if diff := cmp.Diff(test.want, l.All()); diff != "" {
					t.Errorf("(-want +got):\n%s", diff)
				}
			})
		}
	}
}

// Lines keep to their limit: for long ones, many, and empty ones.
func TestTooManyLines(t *testing.T) {
	for _, line := range []string{"\n", "some\n", strings.Repeat("x", bounded.LogLine) + "\n"} {
		l := &bounded.Lines{Most: 1 << 20}
		n, err := io.Copy(l, io.LimitReader(acctest.Endless(line), 1<<30))
		isTooMuch(t, err, 1<<20)
		if n > 2<<20 {
			t.Errorf("%d bytes of %.10q are taken", n, line)
		}
		// With Tail, the last lines of any number are available.
		l = &bounded.Lines{Most: 1 << 20, Tail: 3}
		if _, err := io.Copy(l, io.LimitReader(acctest.Endless(line), 10<<20)); err != nil || len(l.All()) > 4 {
			t.Errorf("the last ones of %.10q are %d: %v", line, len(l.All()), err)
		}
	}
	l := &bounded.Lines{Most: 1 << 20}
	if _, err := io.Copy(l, io.LimitReader(acctest.Endless("x"), 10<<20)); err != nil || len(l.All()) != 1 ||
		len(l.All()[0]) != bounded.LogLine+len("…") {
		t.Errorf("of one endless line, %d are kept: %v", len(l.All()), err)
	}
}

func TestDecoder(t *testing.T) {
	d := bounded.NewDecoder(io.MultiReader(strings.NewReader(strings.Repeat(`{"a":"b"}`+"\r\n", 1000)+`{"a":"`),
		acctest.Endless("x")), 100)
	var value map[string]string
	for range 1000 {
		if err := d.Decode(&value); err != nil || value["a"] != "b" {
			t.Fatalf("%v, %v", value, err)
		}
	}
	isTooMuch(t, d.Decode(&value), 100)
	isTooMuch(t, d.Decode(&value), 100)
	if err := bounded.NewDecoder(strings.NewReader(" \n"), 10).Decode(&value); !errors.Is(err, io.EOF) {
		t.Errorf("after the last value: %v", err)
	}
}
