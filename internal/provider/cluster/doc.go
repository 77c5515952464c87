// Package cluster implements the resource and the data source trainyard_cluster.
package cluster
