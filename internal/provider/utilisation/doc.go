// Package utilisation implements the data source trainyard_utilisation.
package utilisation
