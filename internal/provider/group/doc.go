// Package group implements the resource and the data source trainyard_group.
package group
