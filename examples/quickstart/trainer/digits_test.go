package main

import (
	"bytes"
	"compress/gzip"
	"strings"
	"testing"
)

func TestEmbeddedDigits(t *testing.T) {
	digits, err := loadDigits("")
	if err != nil {
		t.Fatal(err)
	}
	if len(digits) != 1797 {
		t.Errorf("%d images, want 1797", len(digits))
	}
	perClass := make([]int, classCount)
	for _, d := range digits {
		perClass[d.label]++
	}
	for label, n := range perClass {
		if n < 170 || n > 190 { // UCI documents 174 to 183 images of each digit
			t.Errorf("%d images of digit %d", n, label)
		}
	}
	if first := digits[0]; first.label != 0 || first.pixels[2] != 5.0/16 || first.pixels[0] != 0 {
		t.Errorf("first image: label %d, pixels %v", first.label, first.pixels[:8])
	}
}

func TestReadDigitsRejects(t *testing.T) {
	row := func(pixel, label string) string {
		return pixel + strings.Repeat(",0", pixelCount-1) + "," + label + "\n"
	}
	tests := map[string]struct{ csv, want string }{
		"pixel too high":       {row("0", "1") + row("17", "1"), `line 2: pixel 0 is "17"`},
		"pixel not a number":   {row("x", "1"), `pixel 0 is "x"`},
		"pixel that is no ink": {row("NaN", "1"), `pixel 0 is "NaN"`},
		"label out of range":   {row("0", "10"), `the label is "10"`},
		"label not whole":      {row("0", "1.5"), `the label is "1.5"`},
		"short row":            {"1,2,3\n", "wrong number of fields"},
		"nothing":              {"", "holds no images"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := readDigits(compressed(t, test.csv))
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("error %v, want %q", err, test.want)
			}
		})
	}
	t.Run("not compressed", func(t *testing.T) {
		if _, err := readDigits(strings.NewReader("0,1,2")); err == nil {
			t.Error("no error")
		}
	})
}

func compressed(t *testing.T, text string) *bytes.Buffer {
	t.Helper()
	var buffer bytes.Buffer
	w := gzip.NewWriter(&buffer)
	if _, err := w.Write([]byte(text)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return &buffer
}

func TestLoadDigitsNamesTheMissingFile(t *testing.T) {
	if _, err := loadDigits("no-such.csv.gz"); err == nil || !strings.Contains(err.Error(), "no-such.csv.gz") {
		t.Errorf("error %v", err)
	}
}

// numbered makes n digits that differ in their first pixel.
func numbered(n int) []digit {
	digits := make([]digit, n)
	for i := range digits {
		digits[i].pixels[0] = float64(i)
	}
	return digits
}

func TestSplitHoldsOutAFifth(t *testing.T) {
	first, second := splitDigits(numbered(1797)), splitDigits(numbered(1797))
	if len(first.heldOut) != 359 || len(first.training) != 1438 {
		t.Fatalf("%d held out, %d for training; want 359 and 1438", len(first.heldOut), len(first.training))
	}
	seen := map[float64]bool{}
	inOrder := true
	for i, d := range first.heldOut {
		seen[d.pixels[0]] = true
		inOrder = inOrder && d.pixels[0] == float64(i)
		if d != second.heldOut[i] {
			t.Fatal("the split differs from one call to the next")
		}
	}
	if inOrder {
		t.Error("the digits are not shuffled")
	}
	for _, d := range first.training {
		if seen[d.pixels[0]] {
			t.Fatalf("digit %v is both held out and trained on", d.pixels[0])
		}
		seen[d.pixels[0]] = true
	}
	if len(seen) != 1797 {
		t.Errorf("%d distinct digits after the split, want 1797", len(seen))
	}
}

func TestSamplersShareTheTrainingDigits(t *testing.T) {
	const trainers = 4
	training := numbered(102)
	dealt := map[float64]int{}
	for trainer := range trainers {
		share := shardOf(len(training), trainer, trainers)
		batch := make([]*digit, share.size()) // one epoch
		newSampler(training, trainer, trainers, 7).fill(batch)
		for _, d := range batch {
			dealt[d.pixels[0]]++
		}
	}
	for i := range training {
		if n := dealt[float64(i)]; n != 1 {
			t.Errorf("digit %d is dealt %d times in the first epoch, want once", i, n)
		}
	}
}

func TestSamplerGoesOnAfterAnEpoch(t *testing.T) {
	samples := newSampler(numbered(5), 0, 1, 7)
	batch := make([]*digit, 15)
	samples.fill(batch)
	dealt := map[float64]int{}
	for _, d := range batch {
		dealt[d.pixels[0]]++
	}
	for i := range 5 {
		if n := dealt[float64(i)]; n != 3 {
			t.Errorf("digit %d is dealt %d times in three epochs", i, n)
		}
	}
}
