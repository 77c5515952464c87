package nvml

import "time"

// required are the functions without which nothing can be read.
var required = []string{
	"nvmlInit", "nvmlShutdown", "nvmlDeviceGetCount", "nvmlDeviceGetHandleByIndex", "nvmlDeviceGetUUID",
}

// library is NVML. Its methods, and those of what it returns, call NVML functions, which has knows by their names
// without a version. An error of NVML is a [result].
type library interface {
	// has reports whether the library exports function. Calling a missing one aborts the process.
	has(function string) bool
	deviceGetCount() (int, error)
	deviceGetHandleByIndex(index int) (device, error)
	eventSetCreate() (eventSet, error)
	shutdown() error
}

// device is the handle of a GPU. Two handles of the same GPU are equal.
type device interface {
	getUUID() (string, error)
	getName() (string, error)
	getPCIBusID() (string, error)
	// getMemoryAffinity returns the set of the nearest memory nodes, 64 per number.
	getMemoryAffinity() ([]uint, error)
	getNvLinkState(link int) (active bool, err error)
	getNvLinkRemotePCIBusID(link int) (string, error)
	getNvLinkRemoteDeviceType(link int) (isSwitch bool, err error)
	getMemoryInfo() (memory, error)
	// getMemoryInfoV2 does not count memory reserved by the driver as used.
	getMemoryInfoV2() (memory, error)
	getUtilizationRates() (utilisation, error)
	// getTemperature is in °C, getPowerUsage and getEnforcedPowerLimit in mW.
	getTemperature() (uint32, error)
	getPowerUsage() (uint32, error)
	getEnforcedPowerLimit() (uint32, error)
	getECCMode() (on bool, err error)
	// getTotalECCErrors counts uncorrectable errors since the driver was loaded.
	getTotalECCErrors() (uint64, error)
	getMIGMode() (on bool, err error)
	getComputeRunningProcesses() ([]process, error)
	getGraphicsRunningProcesses() ([]process, error)
	getRemappedRows() (failed bool, err error)
	getRecoveryAction() (recovery, error)
	// registerEvents makes a set record XID errors.
	registerEvents(eventSet) error
}

// recovery is the driver's recommended action for a GPU, see nvmlDeviceGpuRecoveryAction_t in nvml.h.
type recovery uint32

// The recommendations that make a GPU unusable; the last two are from drivers 615 and later.
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
	// wait fails with timedOut if nothing arrives.
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

// memoryNotAvailable stands for process memory that the driver does not know.
const memoryNotAvailable = ^uint64(0)

// process is a process on a GPU; its memory is in bytes, or memoryNotAvailable.
type process struct {
	pid    int
	memory uint64
}
