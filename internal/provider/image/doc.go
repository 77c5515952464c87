// Package image is the resource trainyard_image.
package image
