package engine

import "cmp"

// systems are the operating systems that Go has another name for.
var systems = map[string]string{"linux": "Linux", "darwin": "macOS", "windows": "Windows"}

// System returns what people call an operating system, by Go's name for it.
func System(goos string) string { return cmp.Or(systems[goos], goos) }
