// Package train learns a policy's algorithm "learned" from a trace: a deep Q-network, by DQN or Double DQN.
//
// It is pure, and does the same for the same seed. What it learns in is the simulator of backtests
// ([autoscale.Rehearsal]), in which a change of the count takes its time and costs capacity. The optimum of a demand
// that is known beforehand ([Optimum]) is what it is measured by.
package train
