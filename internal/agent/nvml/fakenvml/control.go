package fakenvml

import (
	"cmp"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// Variable is the environment variable by which the library finds the file of a [Control].
const Variable = "FAKE_NVML"

// Faults are what functions do instead of what they should, by their names: they return an error of NVML, by its
// number, or [Hang].
type Faults map[string]int

// Hang has a function not come back as long as the fault is there.
const Hang = -1

// ResetGPU is an action for [Device.Recovery]; 0 is none.
const ResetGPU = 1

// Errors of NVML for [Faults].
const (
	NotSupported     = 3
	NoPermission     = 4
	DriverNotLoaded  = 9
	IsLost           = 15
	ResetRequired    = 16
	VersionsMismatch = 18
	Unknown          = 999
)

// Device is a GPU as the library shows it.
type Device struct {
	UUID, Name, PCIBusID string

	MemoryMiB, ReservedMiB, UsedMiB int64
	Utilisation, MemoryUtilisation  int
	TemperatureC                    int
	PowerMW, PowerLimitMW           int
	// ECCErrors are its uncorrected errors; nil where ECC is off.
	ECCErrors *int
	MIG       bool
	// NUMANode is nil where there is none.
	NUMANode *int
	// Links are the PCI bus IDs of what its NVLinks lead to: another device, or else a switch. One that is empty is
	// down.
	Links     []string
	Processes []Process
	// RowsFailed tells that rows of its memory could not be remapped.
	RowsFailed bool
	// Recovery is the action that the driver recommends, by its number in nvml.h; nil where the driver is too old to
	// recommend any.
	Recovery *int
	// XIDs are all its errors so far. Each is delivered once to a process that listens, since it started NVML.
	XIDs []int
	// Lost has all functions return [IsLost].
	Lost   bool
	Faults Faults
}

// Process is a process on a GPU.
type Process struct {
	PID int
	// MiB is below 0 where the driver does not know it.
	MiB      int64
	Graphics bool
}

// V100s returns the devices of a host: Tesla V100, as many as are asked for, that nobody uses, with NVLinks among each
// four. Those of hosts with different names have different UUIDs.
func V100s(host string, n int) []Device {
	bus := func(i int) string { return fmt.Sprintf("00000000:%02X:00.0", 0x10+i) }
	devices := make([]Device, n)
	for i := range devices {
		devices[i] = Device{
			UUID:     fmt.Sprintf("GPU-%08x-0000-4000-8000-%012x", crc32.ChecksumIEEE([]byte(host)), i),
			Name:     "Tesla V100-SXM2-32GB",
			PCIBusID: bus(i), NUMANode: new(i * 2 / n),
			MemoryMiB: 32768, ReservedMiB: 268,
			TemperatureC: 34, PowerMW: 42_500, PowerLimitMW: 300_000, ECCErrors: new(0),
		}
		for _, peer := range []int{i ^ 1, i ^ 2, i ^ 3} {
			if peer < n {
				devices[i].Links = append(devices[i].Links, bus(peer))
			}
		}
	}
	return devices
}

// Control is the file that tells the library what to answer.
type Control struct {
	t       testing.TB
	path    string
	changed time.Time
	faults  Faults
	devices []Device
}

// New returns a control of a library without devices.
func New(t testing.TB) *Control {
	t.Helper()
	c := &Control{t: t, path: filepath.Join(t.TempDir(), "control")}
	c.Set()
	return c
}

// Path is the file for [Variable]. It is replaced with each change: a container has to mount its folder.
func (c *Control) Path() string { return c.path }

// Set has the library show these devices, in this order.
func (c *Control) Set(devices ...Device) {
	c.t.Helper()
	c.devices = devices
	c.write()
}

// Break has functions of the library fail for all devices, or only these of a device by its [Device.Faults]; without
// any, none fail.
func (c *Control) Break(faults Faults) {
	c.t.Helper()
	c.faults = faults
	c.write()
}

// write replaces the file. The library knows by the time of change that it is another one, so that no two are the same.
func (c *Control) write() {
	c.t.Helper()
	if now := time.Now(); now.After(c.changed) {
		c.changed = now
	} else {
		c.changed = c.changed.Add(1)
	}
	next := c.path + ".next"
	err := cmp.Or(
		os.WriteFile(next, []byte(text(c.faults, c.devices)), 0o644), //nolint:gosec // containers read it as other users, too
		os.Chtimes(next, c.changed, c.changed),
		os.Rename(next, c.path),
	)
	if err != nil {
		c.t.Fatal(err)
	}
}

// Text is what the file of [Variable] holds for these devices, for a library that is never told anything else.
func Text(devices ...Device) string { return text(nil, devices) }

// text is the file's: a line is a word and its values.
func text(broken Faults, devices []Device) string {
	var b strings.Builder
	line := func(word string, values ...any) {
		b.WriteString(word + " " + fmt.Sprintln(values...))
	}
	faults := func(faults Faults) {
		for function, code := range faults {
			line("fault", function, code)
		}
	}
	faults(broken)
	for _, d := range devices {
		line("device", d.UUID)
		line("name", d.Name)
		line("pci", d.PCIBusID)
		line("memory", d.MemoryMiB, d.ReservedMiB, d.UsedMiB)
		line("utilisation", d.Utilisation, d.MemoryUtilisation)
		line("temperature", d.TemperatureC)
		line("power", d.PowerMW, d.PowerLimitMW)
		if d.ECCErrors != nil {
			line("ecc", *d.ECCErrors)
		}
		if d.MIG {
			line("mig")
		}
		if d.NUMANode != nil {
			line("numa", *d.NUMANode)
		}
		for _, remote := range d.Links {
			line("link", cmp.Or(remote, "-"))
		}
		for _, p := range d.Processes {
			graphics := 0
			if p.Graphics {
				graphics = 1
			}
			line("process", p.PID, p.MiB, graphics)
		}
		for _, xid := range d.XIDs {
			line("xid", xid)
		}
		if d.RowsFailed {
			line("rows_failed")
		}
		if d.Recovery != nil {
			line("recovery", *d.Recovery)
		}
		if d.Lost {
			line("lost")
		}
		faults(d.Faults)
	}
	line("end")
	return b.String()
}
