//go:build !linux || !cgo

package nvml

import "errors"

// load fails, as NVML is a library in C.
func load(string) (library, error) {
	return nil, errors.New("this program was built without cgo and can't use NVIDIA's driver: put trainyard-agent " +
		"next to it, on a machine with glibc, or build it for Linux with CGO_ENABLED=1")
}
