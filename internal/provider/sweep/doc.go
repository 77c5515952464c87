// Package sweep implements the resource and the data source trainyard_sweep.
package sweep
