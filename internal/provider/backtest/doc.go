// Package backtest is the data source trainyard_policy_backtest.
package backtest
