package train

import (
	"math"
	"math/rand/v2"
	"testing"
)

// TestGradients checks that the gradients match difference quotients of the loss over small steps of each weight.
func TestGradients(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 1))
	n := NewNetwork(random, 5, 7, 6, 3)
	for i := range n.Weights { // biases, too
		n.Weights[i] += float32(random.NormFloat64() * 0.3)
	}
	p := n.newPass()
	inputs, goals := make([]float32, 5), make([]float32, 3)
	for range 20 {
		for i := range inputs {
			inputs[i] = float32(random.NormFloat64())
		}
		for i := range goals {
			goals[i] = float32(3 * random.NormFloat64())
		}
		// Half of the errors are beyond the threshold of the Huber loss. The last output does not count, like actions
		// that were not taken.
		loss := func() (sum float64) {
			for i, y := range exactly(n, inputs)[:2] {
				if off := math.Abs(y - float64(goals[i])); off > 1 {
					sum += off - 0.5
				} else {
					sum += off * off / 2
				}
			}
			return sum
		}
		outputs := n.forward(p, inputs)
		for i, y := range exactly(n, inputs) {
			if math.Abs(y-float64(outputs[i])) > 1e-4*(1+math.Abs(y)) {
				t.Fatalf("output %d is %g, want %g", i, outputs[i], y)
			}
		}
		for i := range goals {
			p.deltas[3][i] = huber(outputs[i] - goals[i])
		}
		p.deltas[3][2] = 0
		gradients := make([]float32, len(n.Weights))
		n.backward(p, gradients)
		for i, weight := range n.Weights {
			const step = 1.0 / 1024
			n.Weights[i] = weight + step
			above := loss()
			n.Weights[i] = weight - step
			below := loss()
			n.Weights[i] = weight
			if slope := (above - below) / (2 * step); math.Abs(slope-float64(gradients[i])) > 2e-3*(1+math.Abs(slope)) {
				t.Errorf("the gradient of weight %d is %g, and the slope %g", i, gradients[i], slope)
			}
		}
	}
}

// exactly computes the network in float64, in the simplest way.
func exactly(n *Network, inputs []float32) []float64 {
	x := make([]float64, len(inputs))
	for i, v := range inputs {
		x[i] = float64(v)
	}
	for l := range n.Layers() {
		weights, biases := n.Layer(l)
		y := make([]float64, len(biases))
		for o := range y {
			y[o] = float64(biases[o])
			for i := range x {
				y[o] += x[i] * float64(weights[i*len(y)+o])
			}
			if l < n.Layers()-1 {
				y[o] = max(y[o], 0)
			}
		}
		x = y
	}
	return x
}

// TestAdam checks that Adam finds the minimum of a function with very different slopes.
func TestAdam(t *testing.T) {
	weights, gradients := []float32{5, -3}, make([]float32, 2)
	a := newAdam(2, 0.05)
	for range 2000 {
		gradients[0], gradients[1] = 200*(weights[0]-1), 0.2*(weights[1]-2)
		a.step(weights, gradients, 0.5)
	}
	if math.Abs(float64(weights[0]-1)) > 0.02 || math.Abs(float64(weights[1]-2)) > 0.02 {
		t.Errorf("it ends at %v, want 1 and 2", weights)
	}
	if gradients[0] != 0 || gradients[1] != 0 {
		t.Error("gradients are left")
	}
}
