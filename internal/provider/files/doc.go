// Package files implements the resource trainyard_files.
package files
