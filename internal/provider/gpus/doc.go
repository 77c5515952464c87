// Package gpus is the data source trainyard_gpus.
package gpus
