// Package utilisation is the data source trainyard_utilisation.
package utilisation
