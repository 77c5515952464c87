// Package train trains models for the scaling algorithm "learned" from a trace: a deep Q-network, with DQN or Double
// DQN.
//
// It is pure, and gives the same result for the same seed. Its environment is the backtest simulator
// ([autoscale.Rehearsal]), in which changing the count takes time and costs capacity. The result is measured against
// the optimum for a demand that is known in advance ([Optimum]).
package train
