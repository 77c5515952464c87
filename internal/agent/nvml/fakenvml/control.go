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

// Variable is the environment variable with the path of a [Control]'s file, which the library reads.
const Variable = "FAKE_NVML"

// Faults maps function names to what they do instead of working: return an NVML error, by number, or [Hang].
type Faults map[string]int

// Hang makes a function block for as long as the fault is set.
const Hang = -1

// ResetGPU is a value for [Device.Recovery]; 0 means no action.
const ResetGPU = 1

// NVML error codes for [Faults].
const (
	NotSupported     = 3
	NoPermission     = 4
	DriverNotLoaded  = 9
	IsLost           = 15
	ResetRequired    = 16
	VersionsMismatch = 18
	Unknown          = 999
)

// Device is a GPU as the library reports it.
type Device struct {
	UUID, Name, PCIBusID string

	MemoryMiB, ReservedMiB, UsedMiB int64
	Utilisation, MemoryUtilisation  int
	TemperatureC                    int
	PowerMW, PowerLimitMW           int
	// ECCErrors counts the uncorrected errors; nil if ECC is off.
	ECCErrors *int
	MIG       bool
	// NUMANode is nil if there is none.
	NUMANode *int
	// Links are the PCI bus IDs at the other ends of its NVLinks: another device, or else a switch. An empty ID is a
	// link that is down.
	Links     []string
	Processes []Process
	// RowsFailed reports that rows of its memory could not be remapped.
	RowsFailed bool
	// Recovery is the driver's recommended action, by its number in nvml.h; nil for a driver too old to recommend any.
	Recovery *int
	// XIDs are all its errors so far. Each is delivered once to each listening process since that initialized NVML.
	XIDs []int
	// Lost makes all functions return [IsLost].
	Lost   bool
	Faults Faults
}

// Process is a process on a GPU.
type Process struct {
	PID int
	// MiB is negative if the driver does not know it.
	MiB      int64
	Graphics bool
}

// V100s returns n idle Tesla V100s of a host, with NVLinks within each group of four. Hosts with different names get
// different UUIDs.
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

// New returns a control for a library without devices.
func New(t testing.TB) *Control {
	t.Helper()
	c := &Control{t: t, path: filepath.Join(t.TempDir(), "control")}
	c.Set()
	return c
}

// Path returns the file for [Variable]. Each change replaces the file, so a container has to mount its directory.
func (c *Control) Path() string { return c.path }

// Set makes the library report these devices, in this order.
func (c *Control) Set(devices ...Device) {
	c.t.Helper()
	c.devices = devices
	c.write()
}

// Break makes functions of the library fail for all devices ([Device.Faults] does so for one); without faults, none
// fail.
func (c *Control) Break(faults Faults) {
	c.t.Helper()
	c.faults = faults
	c.write()
}

// write replaces the file. The library detects changes by modification time, so no two versions share one.
func (c *Control) write() {
	c.t.Helper()
	if now := time.Now(); now.After(c.changed) {
		c.changed = now
	} else {
		c.changed = c.changed.Add(1)
	}
	next := c.path + ".next"
	err := cmp.Or(
		os.WriteFile(next, []byte(text(c.faults, c.devices)), 0o644), //nolint:gosec // containers also read it as other users
		os.Chtimes(next, c.changed, c.changed),
		os.Rename(next, c.path),
	)
	if err != nil {
		c.t.Fatal(err)
	}
}

// Text returns the content of the file at [Variable] for these devices, for a library whose answers never change.
func Text(devices ...Device) string { return text(nil, devices) }

// text returns the file's content: each line is a word and its values.
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
