// Package gpus implements the data source trainyard_gpus.
package gpus
