// Package qmodel holds the models of the scaling algorithm "learned": a small neural network that estimates, for a
// state, the value of having one member more, the same number, or one fewer. It is pure, and a model's output is
// bit-identical on every machine.
package qmodel
