package nvml

import "fmt"

// result is an error of an NVML function, by its return value.
type result int

// The results that are distinguished here; see nvmlReturn_t in nvml.h.
const (
	invalidArgument  result = 2
	notSupported     result = 3
	noPermission     result = 4
	driverNotLoaded  result = 9
	timedOut         result = 10
	gpuIsLost        result = 15
	resetRequired    result = 16
	blockedBySystem  result = 17
	versionsMismatch result = 18
	unknownError     result = 999
)

// resultTexts are the texts of results that may be shown.
var resultTexts = map[result]string{
	1:                "NVML is not initialised",
	invalidArgument:  "invalid argument",
	notSupported:     "not supported",
	noPermission:     "no permission",
	8:                "the external power cables are not attached",
	driverNotLoaded:  "the driver is not loaded",
	timedOut:         "timeout",
	11:               "the kernel detected an interrupt problem with the GPU",
	14:               "the GPU's infoROM is corrupted",
	gpuIsLost:        "the GPU is lost",
	resetRequired:    "the GPU needs a reset",
	blockedBySystem:  "the operating system blocks the device",
	versionsMismatch: "driver/library version mismatch",
	20:               "out of memory",
	unknownError:     "unknown error",
}

func (r result) Error() string {
	if text, known := resultTexts[r]; known {
		return text
	}
	return fmt.Sprintf("NVML error %d", int(r))
}
