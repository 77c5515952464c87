//go:build !unix

package command

import "os"

// keepOwner returns the permissions of a file for the one that replaces it.
func keepOwner(_ *os.File, replaced os.FileInfo) os.FileMode { return replaced.Mode().Perm() }
