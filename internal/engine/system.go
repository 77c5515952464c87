package engine

import "cmp"

// systems are the names of operating systems that Go calls otherwise.
var systems = map[string]string{"linux": "Linux", "darwin": "macOS", "windows": "Windows"}

// System returns the common name of an operating system, given Go's.
func System(goos string) string { return cmp.Or(systems[goos], goos) }
