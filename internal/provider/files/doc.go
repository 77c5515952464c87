// Package files is the resource trainyard_files.
package files
