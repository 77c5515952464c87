// Package logs implements the data source trainyard_logs.
package logs
