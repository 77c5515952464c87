// Package logs is the data source trainyard_logs.
package logs
