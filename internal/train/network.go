package train

import (
	"math"
	"math/rand/v2"
	"slices"
)

// Network is a multilayer perceptron with ReLU after each layer except the last. All products are rounded before they
// are added, so that it computes the same on every architecture.
type Network struct {
	// Sizes are the numbers of units, from the inputs to the outputs.
	Sizes []int
	// Weights are all parameters: for each layer, a row of weights for each input, followed by the biases.
	Weights []float32
}

// NewNetwork returns a network with random weights after K. He et al. (2015), for ReLU, and biases of 0.
func NewNetwork(random *rand.Rand, sizes ...int) *Network {
	n := &Network{Sizes: sizes}
	for l := range len(sizes) - 1 {
		n.Weights = append(n.Weights, make([]float32, (sizes[l]+1)*sizes[l+1])...)
	}
	for l := range n.Layers() {
		weights, _ := n.Layer(l)
		scale := math.Sqrt(2 / float64(sizes[l]))
		if l == n.Layers()-1 {
			scale *= 0.1 // outputs begin near 0, so that initially no action is preferred by chance
		}
		for i := range weights {
			weights[i] = float32(random.NormFloat64() * scale)
		}
	}
	return n
}

func (n *Network) clone() *Network { return &Network{Sizes: n.Sizes, Weights: slices.Clone(n.Weights)} }

// Layers returns the number of layers of weights.
func (n *Network) Layers() int { return len(n.Sizes) - 1 }

// Layer returns the weights of a layer, one row per input, and its biases. They share memory with the network's.
func (n *Network) Layer(l int) (weights, biases []float32) {
	at := 0
	for i := range l {
		at += (n.Sizes[i] + 1) * n.Sizes[i+1]
	}
	in, out := n.Sizes[l], n.Sizes[l+1]
	return n.Weights[at : at+in*out], n.Weights[at+in*out : at+(in+1)*out]
}

// pass holds what one evaluation of a network leaves for backpropagation, and the memory that both use.
type pass struct {
	values [][]float32 // of each layer, the inputs first
	active [][]int     // the units of each layer that are not 0
	deltas [][]float32 // the derivatives of the loss by the values
	hot    []int       // those of a layer that are not 0
}

func (n *Network) newPass() *pass {
	p := &pass{}
	for _, size := range n.Sizes {
		p.values = append(p.values, make([]float32, size))
		p.active = append(p.active, make([]int, 0, size))
		p.deltas = append(p.deltas, make([]float32, size))
	}
	return p
}

// forward returns the outputs for the inputs. They are valid until the next evaluation.
func (n *Network) forward(p *pass, inputs []float32) []float32 {
	copy(p.values[0], inputs)
	at := 0
	for l := range n.Layers() {
		in, out := n.Sizes[l], n.Sizes[l+1]
		weights := n.Weights[at : at+in*out]
		at += (in + 1) * out
		x, y := p.values[l], p.values[l+1]
		copy(y, n.Weights[at-out:at])
		p.active[l] = nonzero(p.active[l][:0], x)
		addRows(y, x, weights, p.active[l])
		if l < n.Layers()-1 {
			for i, v := range y {
				y[i] = max(v, 0)
			}
		}
	}
	return p.values[len(p.values)-1]
}

// nonzero appends the indexes of the values that are not 0. After ReLU half of them are 0, which saves half of the
// work.
func nonzero(indexes []int, values []float32) []int {
	for i, v := range values {
		if v != 0 {
			indexes = append(indexes, i)
		}
	}
	return indexes
}

// addRows adds to y the rows of a matrix, weighted by x, four at a time so that y is read and written less often.
func addRows(y, x, rows []float32, active []int) {
	n := len(y)
	for len(active) >= 4 {
		i, j, k, l := active[0], active[1], active[2], active[3]
		a, b, c, d := x[i], x[j], x[k], x[l]
		u, v := rows[i*n:][:n], rows[j*n:][:n]
		w, z := rows[k*n:][:n], rows[l*n:][:n]
		for o := range y {
			y[o] = (y[o] + float32(a*u[o]) + float32(b*v[o])) + (float32(c*w[o]) + float32(d*z[o]))
		}
		active = active[4:]
	}
	for _, i := range active {
		a, u := x[i], rows[i*n:][:n]
		for o := range y {
			y[o] += float32(a * u[o])
		}
	}
}

// backward adds the gradients of a loss to gradients, which is laid out like the weights. p.deltas has the derivatives
// of the loss by the outputs of the last evaluation.
func (n *Network) backward(p *pass, gradients []float32) {
	end := len(n.Weights)
	for l := n.Layers() - 1; l >= 0; l-- {
		in, out := n.Sizes[l], n.Sizes[l+1]
		at := end - (in+1)*out
		weights, slopes, biases := n.Weights[at:end-out], gradients[at:end-out], gradients[end-out:end]
		end = at
		x, delta, below := p.values[l], p.deltas[l+1], p.deltas[l]
		p.hot = nonzero(p.hot[:0], delta)
		for _, o := range p.hot {
			biases[o] += delta[o]
		}
		clear(below)
		for _, i := range p.active[l] {
			row, slope := weights[i*out:][:out], slopes[i*out:][:out]
			v, sum, other := x[i], float32(0), float32(0)
			hot := p.hot
			for ; len(hot) >= 2; hot = hot[2:] {
				o, q := hot[0], hot[1]
				d, e := delta[o], delta[q]
				slope[o] += float32(v * d)
				slope[q] += float32(v * e)
				sum += float32(row[o] * d)
				other += float32(row[q] * e)
			}
			for _, o := range hot {
				slope[o] += float32(v * delta[o])
				sum += float32(row[o] * delta[o])
			}
			below[i] = sum + other // where ReLU gave 0, it stays 0
		}
	}
}

// huber returns the derivative of the Huber loss with a threshold of 1: that of the squared error near 0, and of the
// absolute error beyond.
func huber(off float32) float32 { return min(max(off, -1), 1) }

// adam updates weights by their gradients, after D. Kingma and J. Ba (2015).
type adam struct {
	rate           float32
	mean, variance []float32
	// meanLeft and varianceLeft are how much the means still contain of their initial zeros.
	meanLeft, varianceLeft float64
}

const adamMean, adamVariance, adamEpsilon = 0.9, 0.999, 1e-7

func newAdam(weights int, rate float32) *adam {
	return &adam{
		rate: rate, mean: make([]float32, weights), variance: make([]float32, weights), meanLeft: 1, varianceLeft: 1,
	}
}

// step updates the weights by the gradients times share, and sets the gradients to 0.
func (a *adam) step(weights, gradients []float32, share float32) {
	a.meanLeft *= adamMean
	a.varianceLeft *= adamVariance
	rate := float32(float64(a.rate) / (1 - a.meanLeft))
	scale := float32(1 / (1 - a.varianceLeft))
	mean, variance, gradients := a.mean[:len(weights)], a.variance[:len(weights)], gradients[:len(weights)]
	for i := range weights {
		g := gradients[i] * share
		m := float32(adamMean*mean[i]) + float32((1-adamMean)*g)
		v := float32(adamVariance*variance[i]) + float32((1-adamVariance)*float32(g*g))
		mean[i], variance[i], gradients[i] = m, v, 0
		weights[i] -= float32(rate*m) / (float32(math.Sqrt(float64(float32(v*scale)))) + adamEpsilon)
	}
}
