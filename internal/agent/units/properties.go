//go:build linux

package units

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/coreos/go-systemd/v22/dbus"
	godbus "github.com/godbus/dbus/v5"
	"golang.org/x/sys/unix"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
)

// Place is where an instance runs, and what is made for it, all as absolute paths.
type Place struct {
	// Environment is the file with the variables, Script the one that becomes the command, Log that of the output, and
	// Record that of the [Record].
	Environment, Script, Log, Record string
	Helpers                          Helpers
	// Supervisor is the unit that the supervisor runs in; empty where it runs in none.
	Supervisor string
	// GPUs are those that the instance may reach, and Fabric is true where the host has an InfiniBand.
	GPUs   GPUs
	Fabric bool
}

// margin is how long systemd waits beyond the grace period before it kills what the supervisor should have killed; it
// also bounds the recording.
const margin = 5 * time.Second

// execution is a command of a unit. The commands with flags, such as "ExecStartEx", are lost when systemd 252 reads its
// units again.
type execution struct {
	Path      string
	Arguments []string
	// MayFail is true where a failure of the command is none of the unit.
	MayFail bool
}

type environmentFile struct {
	Path     string
	Optional bool
}

// Properties returns the properties of the unit of an instance.
func Properties(spec domain.MemberSpec, at Place) []dbus.Property {
	helper := func(script string, arguments ...string) []execution {
		return []execution{{"/bin/sh", append([]string{"sh", script, at.Record}, arguments...), true}}
	}
	properties := map[string]any{
		"Description": fmt.Sprintf("Trainyard: member %s of cluster %s", spec.Name, spec.Cluster),
		"Slice":       Slice(spec.Cluster, spec.Group),
		// With "exec" systemd 247 itself crashes where a unit that has helpers ends at once.
		"Type":        "simple",
		"CollectMode": "inactive-or-failed",
		"Restart":     "no",

		"ExecStart":    []execution{{"/bin/sh", []string{"sh", at.Script}, false}},
		"ExecStop":     helper(at.Helpers.stop, fmt.Sprint(stopSignal(spec.Container.StopSignal))),
		"ExecStopPost": helper(at.Helpers.record),
		// The helpers are root's.
		"PermissionsStartOnly": true,

		"EnvironmentFiles":           []environmentFile{{at.Environment, true}},
		"StandardOutputFileToAppend": at.Log,
		"StandardErrorFileToAppend":  at.Log,
		"IgnoreSIGPIPE":              false,

		// In this mode what a command that has ended leaves running is killed at once. Then systemd's own signal would
		// reach the command alone; so the script sends the real one to all, and systemd one that does nothing.
		"KillMode":         "mixed",
		"KillSignal":       int32(unix.SIGCONT),
		"SendSIGKILL":      true,
		"TimeoutStopUSec":  micros(time.Duration(spec.GracePeriod) + margin),
		"MemoryAccounting": true, // the counter of what was killed for lack of memory
		"IPAccounting":     true, // which has no effect under control groups of version 1
		"TasksMax":         uint64(math.MaxUint64),
		"OOMPolicy":        "kill",
	}
	if spec.Group != "" { // the agent, a member of none, reaches all
		properties["DevicePolicy"] = "closed"
		properties["DeviceAllow"] = devices(at.GPUs)
	}
	hasGPUs := at.GPUs.All || len(at.GPUs.Minors) > 0
	if _, own := spec.Container.Ulimits["memlock"]; hasGPUs && at.Fabric && !own {
		properties["LimitMEMLOCK"] = uint64(math.MaxUint64) // the memory that an adapter reads is locked
	}
	if at.Supervisor != "" {
		// As the host goes down the supervisor ends first, so that it doesn't take the end of its members for their
		// own.
		properties["Before"] = []string{at.Supervisor}
	}
	maps.Copy(properties, limitsOf(spec.Resources.Limits))
	user, group, hasGroup := strings.Cut(spec.Container.User, ":")
	if user != "" {
		properties["User"] = user
	}
	if hasGroup {
		properties["Group"] = group
	}
	list := make([]dbus.Property, 0, len(properties)+2*len(spec.Container.Ulimits))
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		list = append(list, dbus.Property{Name: name, Value: godbus.MakeVariant(properties[name])})
	}
	for _, name := range slices.Sorted(maps.Keys(spec.Container.Ulimits)) {
		limit, property := spec.Container.Ulimits[name], "Limit"+strings.ToUpper(name)
		// In this order: the hard limit takes the soft one along.
		list = append(list,
			dbus.Property{Name: property, Value: godbus.MakeVariant(ulimit(limit.Hard))},
			dbus.Property{Name: property + "Soft", Value: godbus.MakeVariant(ulimit(limit.Soft))})
	}
	return list
}

// limitsOf are the properties that limits are; what is 0 is none.
func limitsOf(limits domain.Resources) map[string]any {
	properties := map[string]any{}
	if limits.MemoryMiB > 0 {
		properties["MemoryMax"] = uint64(limits.MemoryMiB) << 20
		properties["MemorySwapMax"] = uint64(0)
	}
	if limits.CPUs > 0 {
		properties["CPUQuotaPerSecUSec"] = max(1, uint64(math.Round(limits.CPUs*float64(time.Second/time.Microsecond))))
	}
	return properties
}

func micros(d time.Duration) uint64 { return uint64(max(d, 0) / time.Microsecond) } //nolint:gosec // not negative

// ulimit returns a limit as systemd has it, where the highest number is unlimited.
func ulimit(limit int64) uint64 {
	if limit < 0 {
		return math.MaxUint64
	}
	return uint64(limit)
}

func stopSignal(name string) int {
	if number := signalNumber(name); number != 0 {
		return number
	}
	return int(unix.SIGTERM)
}
