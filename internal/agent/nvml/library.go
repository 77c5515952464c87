package nvml

import "time"

// required are the functions without which there is nothing to be read.
var required = []string{
	"nvmlInit", "nvmlShutdown", "nvmlDeviceGetCount", "nvmlDeviceGetHandleByIndex", "nvmlDeviceGetUUID",
}

// library is NVML. Its functions, and those of what it returns, are called by the name that has says they have, without
// a version; where they fail with an error of NVML, that is a [result].
type library interface {
	// has reports whether the library has a function. One that it has not must not be called.
	has(function string) bool
	deviceGetCount() (int, error)
	deviceGetHandleByIndex(index int) (device, error)
	eventSetCreate() (eventSet, error)
	shutdown() error
}

// device is the handle of a GPU. Two handles of one GPU are equal.
type device interface {
	getUUID() (string, error)
	getName() (string, error)
	getPCIBusID() (string, error)
	// getMemoryAffinity returns the set of the memory nodes that are nearest, 64 of them a number.
	getMemoryAffinity() ([]uint, error)
	getNvLinkState(link int) (active bool, err error)
	getNvLinkRemotePCIBusID(link int) (string, error)
	getNvLinkRemoteDeviceType(link int) (isSwitch bool, err error)
	getMemoryInfo() (memory, error)
	// getMemoryInfoV2 does not count as used what the driver has reserved.
	getMemoryInfoV2() (memory, error)
	getUtilizationRates() (utilisation, error)
	// getTemperature is in °C, getPowerUsage and getEnforcedPowerLimit in mW.
	getTemperature() (uint32, error)
	getPowerUsage() (uint32, error)
	getEnforcedPowerLimit() (uint32, error)
	getECCMode() (on bool, err error)
	// getTotalECCErrors counts those since the driver was loaded that could not be corrected.
	getTotalECCErrors() (uint64, error)
	getMIGMode() (on bool, err error)
	getComputeRunningProcesses() ([]process, error)
	getGraphicsRunningProcesses() ([]process, error)
	getRemappedRows() (failed bool, err error)
	getRecoveryAction() (recovery, error)
	// registerEvents has XID errors recorded in a set.
	registerEvents(eventSet) error
}

// recovery is what the driver recommends to do about a GPU, see nvmlDeviceGpuRecoveryAction_t in nvml.h.
type recovery uint32

// The recommendations that keep a GPU from being used; the last two are those of drivers from 615 on.
const (
	resetGPU      recovery = 1
	rebootNode    recovery = 2
	drainP2P      recovery = 3
	drainAndReset recovery = 4
	resetBus      recovery = 6
	rebootMachine recovery = 7
)

// eventSet is where XID errors arrive.
type eventSet interface {
	// wait fails with timedOut where nothing arrives.
	wait(time.Duration) (event, error)
	free() error
}

// event is an XID error of a GPU.
type event struct {
	device device
	xid    int
}

// memory is in bytes.
type memory struct {
	total, used, free uint64
}

// utilisation is in percent.
type utilisation struct {
	gpu, memory uint32
}

// memoryNotAvailable stands for the memory of a process which the driver does not know.
const memoryNotAvailable = ^uint64(0)

// process is a process on a GPU; its memory is in bytes, or memoryNotAvailable.
type process struct {
	pid    int
	memory uint64
}
