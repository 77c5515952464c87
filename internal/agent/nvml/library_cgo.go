//go:build linux && cgo

package nvml

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/NVIDIA/go-nvml/pkg/dl"
	"github.com/NVIDIA/go-nvml/pkg/nvml"
)

// defaultLibrary is the name that the dynamic linker looks for.
const defaultLibrary = "libnvidia-ml.so.1"

// versions are the functions of which go-nvml calls the newest version in the library. It calls the others by their
// plain names.
var versions = map[string][]string{
	"nvmlInit":                              {"_v2"},
	"nvmlDeviceGetCount":                    {"_v2"},
	"nvmlDeviceGetHandleByIndex":            {"_v2"},
	"nvmlDeviceGetPciInfo":                  {"_v2", "_v3"},
	"nvmlDeviceGetNvLinkRemotePciInfo":      {"_v2"},
	"nvmlDeviceGetComputeRunningProcesses":  {"_v2", "_v3"},
	"nvmlDeviceGetGraphicsRunningProcesses": {"_v2", "_v3"},
	"nvmlEventSetWait":                      {"_v2"},
}

// loaded is the library of this process, used only inside libraryQueue. The dynamic linker binds each function of NVML
// for good to the first library that has it, so there can't be a second.
var loaded *goNVML

// goNVML is NVML through NVIDIA's go-nvml, which aborts the process if the library lacks the function that is called.
type goNVML struct {
	nvml.Interface

	name  string
	file  *dl.DynamicLibrary
	known sync.Map // whether the library exports a function, by its name
}

// load loads and initialises NVML from a file, or from where the dynamic linker finds it.
func load(file string) (library, error) {
	name := cmp.Or(file, defaultLibrary)
	if loaded == nil {
		opened, err := openLibrary(name)
		if err != nil {
			return nil, err
		}
		loaded = opened
	}
	if loaded.name != name {
		return nil,
			fmt.Errorf("this process has already loaded %s and can't load %s as well: use another process for that",
				loaded.name, name)
	}
	if err := check(loaded.Init()); err != nil {
		return nil, err
	}
	return loaded, nil
}

// openLibrary loads a library, if it has the required functions.
func openLibrary(name string) (*goNVML, error) {
	// Not RTLD_GLOBAL, as go-nvml would: a file that turns out not to be NVML is unloaded again, and leaves nothing
	// bound to it.
	file := dl.New(name, dl.RTLD_LAZY|dl.RTLD_LOCAL)
	if err := file.Open(); err != nil {
		if strings.Contains(err.Error(), "No such file or directory") { // glibc and musl have no other indication
			return nil, fmt.Errorf("%w: %w", ErrNoLibrary, err)
		}
		return nil, fmt.Errorf("loading NVIDIA's library: %w", err)
	}
	l := &goNVML{Interface: nvml.New(nvml.WithLibraryPath(name)), name: name, file: file}
	for _, function := range required {
		if !l.has(function) {
			_ = file.Close()
			return nil, fmt.Errorf(
				"the library %s lacks %s: it isn't NVIDIA's, or is from a driver before 2013; reinstall the driver",
				name, function,
			)
		}
	}
	return l, nil
}

func (l *goNVML) has(function string) bool {
	if has, known := l.known.Load(function); known {
		return has == true
	}
	has := l.file.Lookup(function) == nil
	for _, version := range versions[function] {
		has = has || l.file.Lookup(function+version) == nil
	}
	l.known.Store(function, has)
	return has
}

func (l *goNVML) deviceGetCount() (int, error) {
	return checked(l.DeviceGetCount())
}

func (l *goNVML) deviceGetHandleByIndex(index int) (device, error) {
	handle, ret := l.DeviceGetHandleByIndex(index)
	return goDevice{handle}, check(ret)
}

func (l *goNVML) eventSetCreate() (eventSet, error) {
	set, ret := l.EventSetCreate()
	return goEventSet{set}, check(ret)
}

func (l *goNVML) shutdown() error {
	return check(l.Shutdown())
}

// goDevice is a device handle of go-nvml.
type goDevice struct {
	nvml.Device
}

func (d goDevice) getUUID() (string, error) {
	return checked(d.GetUUID())
}

func (d goDevice) getName() (string, error) {
	return checked(d.GetName())
}

func (d goDevice) getPCIBusID() (string, error) {
	info, ret := d.GetPciInfo()
	return text(info.BusId[:]), check(ret)
}

func (d goDevice) getMemoryAffinity() ([]uint, error) {
	const nodes = 1024 // Linux's maximum
	return checked(d.GetMemoryAffinity(nodes, nvml.AFFINITY_SCOPE_NODE))
}

func (d goDevice) getNvLinkState(link int) (bool, error) {
	state, ret := d.GetNvLinkState(link)
	return state == nvml.FEATURE_ENABLED, check(ret)
}

func (d goDevice) getNvLinkRemotePCIBusID(link int) (string, error) {
	info, ret := d.GetNvLinkRemotePciInfo(link)
	return text(info.BusId[:]), check(ret)
}

func (d goDevice) getNvLinkRemoteDeviceType(link int) (bool, error) {
	kind, ret := d.GetNvLinkRemoteDeviceType(link)
	return kind == nvml.NVLINK_DEVICE_TYPE_SWITCH, check(ret)
}

func (d goDevice) getMemoryInfo() (memory, error) {
	m, ret := d.GetMemoryInfo()
	return memory{total: m.Total, used: m.Used, free: m.Free}, check(ret)
}

func (d goDevice) getMemoryInfoV2() (memory, error) {
	m, ret := d.GetMemoryInfo_v2()
	return memory{total: m.Total, used: m.Used, free: m.Free}, check(ret)
}

func (d goDevice) getUtilizationRates() (utilisation, error) {
	u, ret := d.GetUtilizationRates()
	return utilisation{gpu: u.Gpu, memory: u.Memory}, check(ret)
}

func (d goDevice) getTemperature() (uint32, error) {
	// Deprecated, but its replacement is not in drivers before 570.
	return checked(d.GetTemperature(nvml.TEMPERATURE_GPU))
}

func (d goDevice) getPowerUsage() (uint32, error) {
	return checked(d.GetPowerUsage())
}

func (d goDevice) getEnforcedPowerLimit() (uint32, error) {
	return checked(d.GetEnforcedPowerLimit())
}

func (d goDevice) getECCMode() (bool, error) {
	current, _, ret := d.GetEccMode()
	return current == nvml.FEATURE_ENABLED, check(ret)
}

func (d goDevice) getTotalECCErrors() (uint64, error) {
	return checked(d.GetTotalEccErrors(nvml.MEMORY_ERROR_TYPE_UNCORRECTED, nvml.VOLATILE_ECC))
}

func (d goDevice) getMIGMode() (bool, error) {
	current, _, ret := d.GetMigMode()
	return current == nvml.DEVICE_MIG_ENABLE, check(ret)
}

func (d goDevice) getComputeRunningProcesses() ([]process, error) {
	return processes(d.GetComputeRunningProcesses())
}

func (d goDevice) getGraphicsRunningProcesses() ([]process, error) {
	return processes(d.GetGraphicsRunningProcesses())
}

func (d goDevice) getRemappedRows() (bool, error) {
	_, _, _, failed, ret := d.GetRemappedRows()
	return failed, check(ret)
}

func (d goDevice) getRecoveryAction() (recovery, error) {
	values := []nvml.FieldValue{{FieldId: nvml.FI_DEV_GET_GPU_RECOVERY_ACTION}}
	if err := check(d.GetFieldValues(values)); err != nil {
		return 0, err
	}
	return recovery(binary.NativeEndian.Uint32(values[0].Value[:])), check(nvml.Return(values[0].NvmlReturn))
}

func (d goDevice) registerEvents(set eventSet) error {
	return check(d.RegisterEvents(nvml.EventTypeXidCriticalError, set.(goEventSet).EventSet)) //nolint:forcetypeassert // there is no other implementation
}

// goEventSet is an event set of go-nvml.
type goEventSet struct {
	nvml.EventSet
}

func (s goEventSet) wait(limit time.Duration) (event, error) {
	data, ret := s.Wait(uint32(limit.Milliseconds()))
	return event{device: goDevice{data.Device}, xid: int(data.EventData)}, check(ret)
}

func (s goEventSet) free() error {
	return check(s.Free())
}

// check converts a return value of NVML to an error. It does not get NVML's own text, which would be another call of
// the library.
func check(ret nvml.Return) error {
	if ret == nvml.SUCCESS {
		return nil
	}
	return result(ret)
}

func checked[T any](value T, ret nvml.Return) (T, error) {
	return value, check(ret)
}

func processes(infos []nvml.ProcessInfo, ret nvml.Return) ([]process, error) {
	found := make([]process, len(infos))
	for i, info := range infos {
		found[i] = process{pid: int(info.Pid), memory: info.UsedGpuMemory}
	}
	return found, check(ret)
}

// text returns what is in a buffer before the first zero.
func text(buffer []int8) string {
	var b strings.Builder
	for _, c := range buffer {
		if c == 0 {
			break
		}
		b.WriteByte(byte(c))
	}
	return b.String()
}
