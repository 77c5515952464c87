// Package image implements the resource trainyard_image.
package image
