package main

import (
	"math"
	"testing"
)

func TestGradientMatchesFiniteDifferences(t *testing.T) {
	digits, err := loadDigits("")
	if err != nil {
		t.Fatal(err)
	}
	batch := []*digit{&digits[0], &digits[1], &digits[2], &digits[13]}
	parameters, gradient := initialParameters(3), make([]float64, parameterCount)
	for i := range gradient {
		gradient[i] = math.NaN() // previous content must not matter
	}
	computeGradient(parameters, batch, gradient)

	const step = 1e-5
	scratch := make([]float64, parameterCount)
	meanLoss := func() float64 { return computeGradient(parameters, batch, scratch).meanLoss() }
	for i := 0; i < parameterCount; i += 7 { // covers all layers in a seventh of the time
		kept := parameters[i]
		parameters[i] = kept + step
		above := meanLoss()
		parameters[i] = kept - step
		below := meanLoss()
		parameters[i] = kept
		if numeric := (above - below) / (2 * step); math.Abs(numeric-gradient[i]) > 1e-7 {
			t.Fatalf("parameter %d: gradient %g, by finite differences %g", i, gradient[i], numeric)
		}
	}
}

func TestEvaluateCountsWhatIsRight(t *testing.T) {
	digits := make([]digit, 4)
	for i := range digits {
		digits[i].label = i % 2
	}
	parameters := make([]float64, parameterCount)
	networkOf(parameters).outputBias[1] = 50 // always predicts 1
	if got := evaluate(parameters, digits); got.accuracy() != 0.5 || math.Abs(got.meanLoss()-25) > 1e-9 {
		t.Errorf("accuracy %g, loss %g; want 0.5 and 25", got.accuracy(), got.meanLoss())
	}
}
