package nvml

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
)

// look is one reading of a device.
type look struct {
	ctx    context.Context
	reader *Reader
	slot   *slot

	known identity
	gpu   domain.GPU
	// notes are what could not be read, and why.
	notes []string
	// lacking are the functions that the library doesn't have: one cause, and so one note.
	lacking []string
	// ended is why nothing more is read.
	ended error
	// rowsFailed means that rows of its memory are broken and could not be replaced by spare ones.
	rowsFailed bool
	// action is the driver's recommended action.
	action recovery
}

// take fills in what can be read of the GPU.
func (l *look) take() {
	if handle := l.attach(); handle != nil {
		l.identify(handle)
		l.measure(handle)
		l.slot.remember(l.known)
	}
	l.gpu.Device, l.gpu.Index, l.gpu.PCIBusID = l.known.Device, l.slot.index, l.known.pciBusID
	l.gpu.Trouble = trouble(l.ended, l.reader.judge(&l.gpu, l.ended, time.Now()), l.action, l.rowsFailed)
	if len(l.lacking) > 0 {
		l.notes = append(l.notes,
			fmt.Sprintf("the driver's library lacks %s: update the driver", domain.Enumerate(l.lacking)))
	}
	l.gpu.Unknown = strings.Join(l.notes, "; ")
}

// attach returns the device's handle, and determines its UUID. It returns nil if it can't; then the device is assumed
// to be the one known before.
func (l *look) attach() device {
	l.known = l.slot.recall()
	limit := l.reader.settings.Answer
	if l.known.handle == nil {
		limit = l.reader.settings.Start
	}
	handle, err := through(l.ctx, &l.slot.callQueue, "nvmlDeviceGetHandleByIndex", limit, func() (device, error) {
		return l.reader.library.deviceGetHandleByIndex(l.slot.index)
	})
	if errors.Is(err, unknownError) {
		err = gpuIsLost // some drivers report this for a device that was lost before they were loaded
	}
	if err != nil {
		l.end(err)
		return nil
	}
	uuid, err := try(l, "nvmlDeviceGetUUID", handle.getUUID)
	if err != nil {
		l.end(err)
		return nil
	}
	l.known = l.slot.meet(handle, uuid)
	return handle
}

// identify reads the constant properties, unless they are known.
func (l *look) identify(d device) {
	if l.known.complete {
		return
	}
	if name, ok := ask(l, "nvmlDeviceGetName", d.getName); ok {
		l.known.Model = name
	}
	if id, ok := ask(l, "nvmlDeviceGetPciInfo", d.getPCIBusID); ok {
		l.known.pciBusID = id
	}
	l.known.NUMANode = l.numaNode(d)
	l.known.remotes = l.remotes(d)
	l.known.complete = l.ended == nil && len(l.notes)+len(l.lacking) == 0
}

// measure reads the changing properties.
func (l *look) measure(d device) {
	if m, ok := l.memory(d); ok {
		l.known.MemoryMiB = int64(m.total >> 20)
		l.gpu.MemoryUsedMiB, l.gpu.MemoryFreeMiB = new(int64(m.used>>20)), new(int64(m.free>>20))
	}
	if u, ok := ask(l, "nvmlDeviceGetUtilizationRates", d.getUtilizationRates); ok {
		l.gpu.Utilisation, l.gpu.MemoryUtilisation = new(float64(u.gpu)), new(float64(u.memory))
	}
	if celsius, ok := ask(l, "nvmlDeviceGetTemperature", d.getTemperature); ok {
		l.gpu.TemperatureC = new(int64(celsius))
	}
	if milliwatts, ok := ask(l, "nvmlDeviceGetPowerUsage", d.getPowerUsage); ok {
		l.gpu.PowerW = new(float64(milliwatts) / 1000)
	}
	if milliwatts, ok := ask(l, "nvmlDeviceGetEnforcedPowerLimit", d.getEnforcedPowerLimit); ok {
		l.gpu.PowerLimitW = new(float64(milliwatts) / 1000)
	}
	if on, _ := ask(l, "nvmlDeviceGetEccMode", d.getECCMode); on {
		if n, ok := ask(l, "nvmlDeviceGetTotalEccErrors", d.getTotalECCErrors); ok {
			l.gpu.ECCErrors = new(int64(n))
		}
	}
	if on, ok := ask(l, "nvmlDeviceGetMigMode", d.getMIGMode); ok {
		l.gpu.MIG = new(on)
	}
	l.rowsFailed, _ = ask(l, "nvmlDeviceGetRemappedRows", d.getRemappedRows)
	// drivers before 565 don't support it
	if action, err := try(l, "nvmlDeviceGetFieldValues", d.getRecoveryAction); err == nil {
		l.action, l.gpu.RecoveryNeeded = action, new(actionTexts[action] != "")
	}
	l.gpu.Processes = l.processes(d)
}

// memory uses the second version if there is one, which does not count memory reserved by the driver as used.
func (l *look) memory(d device) (memory, bool) {
	if m, err := try(l, "nvmlDeviceGetMemoryInfo_v2", d.getMemoryInfoV2); err == nil {
		return m, true
	}
	return ask(l, "nvmlDeviceGetMemoryInfo", d.getMemoryInfo)
}

// ask makes a call, and reports whether it returned a value. If it failed, a note says so, unless the device does not
// support it.
func ask[T any](l *look, function string, f func() (T, error)) (T, bool) {
	value, err := try(l, function, f)
	if err != nil {
		l.note(function, err)
	}
	return value, err == nil
}

// try makes a call, unless the reading has ended or the library lacks the function.
func try[T any](l *look, function string, f func() (T, error)) (T, error) {
	var none T
	switch {
	case l.ended != nil:
		return none, l.ended
	case !l.reader.library.has(function):
		return none, errLacking
	}
	value, err := through(l.ctx, &l.slot.callQueue, function, l.reader.settings.Answer, f)
	if err != nil {
		if isFinal(err) {
			l.end(err)
		}
		return none, err
	}
	return value, nil
}

// errLacking means that the library lacks a function, as an older driver's does.
var errLacking = errors.New("the driver's library lacks it")

// note records why something could not be read, if that is worth knowing.
func (l *look) note(function string, err error) {
	switch {
	case l.ended != nil || errors.Is(err, notSupported):
	case errors.Is(err, errLacking):
		l.lacking = append(l.lacking, function)
	default:
		l.notes = append(l.notes, fmt.Sprintf("%s: %v", function, err))
	}
}

// isAnswer reports whether a call returned with an error of NVML, rather than being abandoned.
func isAnswer(err error) bool {
	_, answered := errors.AsType[result](err)
	return answered
}

// isLate reports whether a call did not return.
func isLate(err error) bool {
	_, late := errors.AsType[*noAnswerError](err)
	return late
}

// isFinal reports whether nothing more can be read of a device after this error.
func isFinal(err error) bool {
	return !isAnswer(err) || errors.Is(err, gpuIsLost) || errors.Is(err, resetRequired)
}

// isGone reports whether a device will have been reset when it answers again. A slow or refused call does not imply
// that.
func isGone(err error) bool {
	return errors.Is(err, gpuIsLost) || errors.Is(err, resetRequired)
}

// end ends the reading.
func (l *look) end(err error) {
	if l.ended != nil {
		return
	}
	l.ended = err
	if isLate(err) {
		l.notes = append(l.notes, err.Error())
	}
}

// fallenOff is the XID of a GPU that is lost.
const fallenOff = 79

// Why a device can't be used without an intervention.
const (
	needsReset  = "it needs a reset (nvidia-smi --gpu-reset)"
	needsReboot = "it needs a restart of its host"
)

// actionTexts are the texts for the driver's recommended actions.
var actionTexts = map[recovery]string{
	resetGPU: needsReset, drainAndReset: needsReset, resetBus: needsReset,
	rebootNode: needsReboot, rebootMachine: needsReboot,
	drainP2P: "its peer-to-peer traffic has to end",
}

// trouble returns why a device can't be used: what ended its reading, the XID that makes it unusable (0 if there is
// none), the driver's recommended action, and whether rows of its memory are broken.
func trouble(ended error, fatalXID int, action recovery, rowsFailed bool) string {
	var reasons []string
	if fatalXID != 0 {
		reasons = append(reasons, domain.XIDTrouble(fatalXID))
	}
	if text := actionTexts[action]; text != "" {
		reasons = append(reasons, text)
	}
	switch {
	case ended == nil:
	case isLate(ended):
		reasons = append(reasons, "the driver does not answer")
	case errors.Is(ended, resetRequired):
		reasons = append(reasons, needsReset)
	case !errors.Is(ended, gpuIsLost):
		reasons = append(reasons, "the driver refuses it: "+ended.Error())
	case fatalXID != fallenOff:
		reasons = append(reasons, domain.XIDText(fallenOff))
	}
	if rowsFailed {
		reasons = append(reasons, "rows of its memory could not be remapped: have it replaced")
	}
	return strings.Join(reasons, "; ")
}
