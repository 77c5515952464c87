// Package backtest implements the data source trainyard_policy_backtest.
package backtest
