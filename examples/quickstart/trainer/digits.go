package main

import (
	"bytes"
	"compress/gzip"
	_ "embed"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"strconv"
)

// embeddedDigits is UCI's Optical Recognition of Handwritten Digits, CC BY 4.0; see digits.LICENSE.md.
//
//go:embed digits.csv.gz
var embeddedDigits []byte

const (
	pixelCount = 64 // 8 × 8
	classCount = 10
	maxPixel   = 16
)

// splitSeed determines which images are held out. It is not a flag: a member with another seed would train on images
// that the chief uses for evaluation.
const splitSeed = 1998

// digit is an image, row by row, with 0 for paper and 1 for full ink, and the digit that it shows.
type digit struct {
	pixels [pixelCount]float64
	label  int
}

// dataset is the shuffled digits, split in two.
type dataset struct{ training, heldOut []digit }

// loadDigits reads a gzip-compressed CSV file; an empty path means the embedded data set.
func loadDigits(path string) ([]digit, error) {
	if path == "" {
		return readDigits(bytes.NewReader(embeddedDigits))
	}
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("cannot read the data set: %w", err)
	}
	defer file.Close()
	digits, err := readDigits(file)
	if err != nil {
		return nil, fmt.Errorf("cannot read the data set %s: %w", path, err)
	}
	return digits, nil
}

// readDigits reads gzip-compressed rows of 64 pixels (0 to 16) and a label (0 to 9).
func readDigits(r io.Reader) ([]digit, error) {
	plain, err := gzip.NewReader(r)
	if err != nil {
		return nil, err
	}
	rows := csv.NewReader(plain)
	rows.FieldsPerRecord = pixelCount + 1
	rows.ReuseRecord = true

	var digits []digit
	for {
		row, err := rows.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		d, err := parseDigit(row)
		if err != nil {
			line, _ := rows.FieldPos(0)
			return nil, fmt.Errorf("line %d: %w", line, err)
		}
		digits = append(digits, d)
	}
	if len(digits) == 0 {
		return nil, errors.New("it holds no images")
	}
	return digits, nil
}

func parseDigit(row []string) (digit, error) {
	var d digit
	for i := range d.pixels {
		value, err := strconv.ParseFloat(row[i], 64)
		if err != nil || !(value >= 0 && value <= maxPixel) {
			return digit{}, fmt.Errorf("pixel %d is %q: it must be a number from 0 to %d", i, row[i], maxPixel)
		}
		d.pixels[i] = value / maxPixel
	}
	label, err := strconv.Atoi(row[pixelCount])
	if err != nil || label < 0 || label >= classCount {
		return digit{}, fmt.Errorf("the label is %q: it must be a digit from 0 to %d", row[pixelCount], classCount-1)
	}
	d.label = label
	return d, nil
}

// splitDigits shuffles the digits, always in the same way, and holds out a fifth of them. It reorders its argument.
func splitDigits(digits []digit) dataset {
	rng := rand.New(rand.NewPCG(splitSeed, 0))
	rng.Shuffle(len(digits), func(i, j int) { digits[i], digits[j] = digits[j], digits[i] })
	heldOut := len(digits) / 5
	return dataset{heldOut: digits[:heldOut], training: digits[heldOut:]}
}

// sampler deals mini-batches from a set of digits: each digit once per epoch, in a new order each time.
type sampler struct {
	digits []digit
	rng    *rand.Rand
	order  []int
}

// newSampler samples one trainer's share. Trainers with the same seed get different orders, by their position.
func newSampler(training []digit, trainer, trainers int, seed uint64) *sampler {
	share := shardOf(len(training), trainer, trainers)
	return &sampler{
		digits: training[share.low:share.high],
		rng:    rand.New(rand.NewPCG(seed, uint64(trainer)+1)),
	}
}

// fill fills the batch with the next digits.
func (s *sampler) fill(batch []*digit) {
	for i := range batch {
		if len(s.order) == 0 {
			s.order = s.rng.Perm(len(s.digits))
		}
		batch[i] = &s.digits[s.order[0]]
		s.order = s.order[1:]
	}
}
