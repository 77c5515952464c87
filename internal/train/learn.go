package train

import (
	"context"

	"github.com/trainyard/terraform-provider-trainyard/internal/autoscale"
	"github.com/trainyard/terraform-provider-trainyard/internal/qmodel"
)

// Point is a point of a learning curve.
type Point struct {
	Updates int
	// Cost is the hourly cost of the policy at that point over the whole trace, without random actions. Error is the
	// mean error of the values, in intervals with too few members.
	Cost, Error float64
}

// Learned is the result of a training.
type Learned struct {
	// Model is that of the best point of the curve, and Text the same model as a file.
	Model *qmodel.Model
	Text  string
	Best  Point
	Curve []Point
	// Decisions is the number of simulated decisions, including those for the curve.
	Decisions int
}

// points is the number of points of a curve, without the one before the first update.
const points = 25

// Learn trains a model for a problem. It calls report for each point of the curve as soon as it is known, and for
// progress in between. All randomness comes from the seed.
func Learn(
	ctx context.Context, p Problem, s Settings, digest string, report func(done int, newest Point),
) (Learned, error) {
	normal, err := measure(p, s.Seed)
	if err != nil {
		return Learned{}, err
	}
	environment, err := newScaling(p, normal, s.Discount)
	if err != nil {
		return Learned{}, err
	}
	trainer := New(s, environment)
	for input, varies := range normal.varies {
		if !varies {
			trainer.ignore(input)
		}
	}
	var l Learned
	for i := range points + 1 {
		for at := s.Updates * max(i-1, 0) / points; i > 0 && at < s.Updates*i/points; {
			at = min(at+max(s.Updates/200, 1), s.Updates*i/points)
			if err := trainer.Run(ctx, at); err != nil {
				return Learned{}, err
			}
			if report != nil && len(l.Curve) > 0 {
				report(at, l.Curve[len(l.Curve)-1])
			}
		}
		model := newModel(trainer.mean, normal, s.Algorithm)
		model.Trained = qmodel.Trained{
			TraceSHA256: digest, Seed: s.Seed, Updates: trainer.Done, CapacityLoad: p.Capacity,
			StartupSeconds: p.Startup.Seconds(),
		}
		text, err := model.Encode()
		if err != nil {
			return Learned{}, err
		}
		course, err := autoscale.Backtest(p.Policy(string(text)), p.Trace, p.Model())
		if err != nil {
			return Learned{}, err
		}
		l.Decisions += p.Decisions()
		hours := p.Trace.Step.Hours() * float64(len(p.Trace.Load))
		point := Point{trainer.Done, p.Prices.Of(course) / hours, trainer.Loss}
		l.Curve = append(l.Curve, point)
		if l.Model == nil || point.Cost < l.Best.Cost {
			l.Model, l.Text, l.Best = model, string(text), point
		}
	}
	l.Decisions += trainer.Decisions + measureDecisions
	return l, nil
}

// newModel returns a network as a model.
func newModel(n *Network, normal normal, algorithm Algorithm) *qmodel.Model {
	var features []string
	for _, place := range normal.places {
		features = append(features, qmodel.Features[place].Name)
	}
	m := qmodel.New(string(algorithm), features)
	m.Mean, m.Scale = normal.mean, normal.scale
	for l := range m.Layers {
		weights, biases := n.Layer(l)
		copy(m.Layers[l].Bias, biases)
		in := len(weights) / len(biases)
		for o := range biases {
			for i := range in {
				m.Layers[l].Weights[o*in+i] = weights[i*len(biases)+o]
			}
		}
	}
	return m
}
