// Package qmodel holds the models of the scaling algorithm learned: a small neural network that says what one member
// more, as many, and one fewer are worth in a state. It is pure, and the same model says the same to the bit on every
// machine.
package qmodel
