package main

import (
	"math"
	"math/rand/v2"
)

const (
	hiddenCount    = 64
	parameterCount = hiddenCount*pixelCount + hiddenCount + classCount*hiddenCount + classCount
)

// network is a view of a flat vector of parameterCount numbers (the parameters or their gradient) as the layers of a
// neural network: 64 pixels → 64 tanh units → softmax over 10 digits. A flat vector can be cut into shards anywhere.
type network struct {
	hiddenWeights []float64 // [hiddenCount][pixelCount]
	hiddenBias    []float64 // [hiddenCount]
	outputWeights []float64 // [classCount][hiddenCount]
	outputBias    []float64 // [classCount]
}

// networkOf views the flat vector; writing to the view writes to the vector.
func networkOf(flat []float64) network {
	cut := func(n int) []float64 {
		part := flat[:n:n]
		flat = flat[n:]
		return part
	}
	return network{
		hiddenWeights: cut(hiddenCount * pixelCount),
		hiddenBias:    cut(hiddenCount),
		outputWeights: cut(classCount * hiddenCount),
		outputBias:    cut(classCount),
	}
}

// initialParameters are the parameters before the first step. They depend only on the seed, so that each parameter
// server computes its own. Weights are scaled by Glorot's rule; biases are 0.
func initialParameters(seed uint64) []float64 {
	parameters := make([]float64, parameterCount)
	rng := rand.New(rand.NewPCG(seed, 0))
	fill := func(weights []float64, in, out int) {
		scale := math.Sqrt(2 / float64(in+out))
		for i := range weights {
			weights[i] = rng.NormFloat64() * scale
		}
	}
	net := networkOf(parameters)
	fill(net.hiddenWeights, pixelCount, hiddenCount)
	fill(net.outputWeights, hiddenCount, classCount)
	return parameters
}

// forward computes the hidden layer's activations and the probability of each class for one digit.
func (n network) forward(d *digit, hidden, probabilities []float64) {
	for h := range hidden {
		hidden[h] = math.Tanh(n.hiddenBias[h] + dot(n.hiddenWeights[h*pixelCount:(h+1)*pixelCount], d.pixels[:]))
	}
	highest := math.Inf(-1)
	for c := range probabilities {
		probabilities[c] = n.outputBias[c] + dot(n.outputWeights[c*hiddenCount:(c+1)*hiddenCount], hidden)
		highest = max(highest, probabilities[c])
	}
	sum := 0.0
	for c := range probabilities {
		probabilities[c] = math.Exp(probabilities[c] - highest)
		sum += probabilities[c]
	}
	for c := range probabilities {
		probabilities[c] /= sum
	}
}

// score is the result on a set of digits: the sum of their cross-entropy losses, and how many were classified
// correctly.
type score struct {
	digits, right int
	loss          float64
}

func (s *score) add(d *digit, probabilities []float64) {
	best := 0
	for c := range probabilities {
		if probabilities[c] > probabilities[best] {
			best = c
		}
	}
	s.digits++
	if best == d.label {
		s.right++
	}
	s.loss -= math.Log(max(probabilities[d.label], math.SmallestNonzeroFloat64))
}

func (s *score) merge(other score) {
	s.digits += other.digits
	s.right += other.right
	s.loss += other.loss
}

// meanLoss is the mean loss per digit.
func (s score) meanLoss() float64 { return s.loss / float64(s.digits) }

// accuracy is the fraction of correctly classified digits, 0 to 1.
func (s score) accuracy() float64 { return float64(s.right) / float64(s.digits) }

// evaluate scores the parameters on digits.
func evaluate(parameters []float64, digits []digit) score {
	net := networkOf(parameters)
	hidden, probabilities := make([]float64, hiddenCount), make([]float64, classCount)
	var total score
	for i := range digits {
		net.forward(&digits[i], hidden, probabilities)
		total.add(&digits[i], probabilities)
	}
	return total
}

// computeGradient overwrites gradient with the gradient of the batch's mean loss, and scores the batch.
func computeGradient(parameters []float64, batch []*digit, gradient []float64) score {
	clear(gradient)
	net, grad := networkOf(parameters), networkOf(gradient)
	hidden, output := make([]float64, hiddenCount), make([]float64, classCount)
	hiddenError := make([]float64, hiddenCount)
	share := 1 / float64(len(batch))

	var total score
	for _, d := range batch {
		net.forward(d, hidden, output)
		total.add(d, output)

		output[d.label]-- // probabilities minus the label, the error at the output
		clear(hiddenError)
		for c, e := range output {
			e *= share
			row := c * hiddenCount
			addScaled(grad.outputWeights[row:row+hiddenCount], e, hidden)
			addScaled(hiddenError, e, net.outputWeights[row:row+hiddenCount])
			grad.outputBias[c] += e
		}
		for h, e := range hiddenError {
			e *= 1 - hidden[h]*hidden[h]
			row := h * pixelCount
			addScaled(grad.hiddenWeights[row:row+pixelCount], e, d.pixels[:])
			grad.hiddenBias[h] += e
		}
	}
	return total
}

func dot(a, b []float64) float64 {
	sum := 0.0
	for i := range a {
		sum += a[i] * b[i]
	}
	return sum
}

// addScaled adds factor × source to target.
func addScaled(target []float64, factor float64, source []float64) {
	for i := range target {
		target[i] += factor * source[i]
	}
}
