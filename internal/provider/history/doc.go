// Package history is the data source trainyard_scaling_history.
package history
