// Package history implements the data source trainyard_scaling_history.
package history
