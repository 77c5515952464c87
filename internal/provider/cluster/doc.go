// Package cluster is the resource and the data source trainyard_cluster.
package cluster
