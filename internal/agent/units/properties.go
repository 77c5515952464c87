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

// Place is where an instance runs, and what is prepared for it. All paths are absolute.
type Place struct {
	// Environment is the file with the variables, Script the script that executes the command, Log the file for its
	// output, and Record the file of its [Record].
	Environment, Script, Log, Record string
	Helpers                          Helpers
	// Supervisor is the unit that the supervisor runs in; empty if there is none.
	Supervisor string
	// GPUs are those that the instance may use. Fabric is true if the host has InfiniBand.
	GPUs   GPUs
	Fabric bool
}

// margin is how long after the grace period systemd kills what the supervisor should have killed; it also bounds the
// recording.
const margin = 5 * time.Second

// execution is a command of a unit. There is no variant with flags, such as "ExecStartEx": systemd 252 loses those when
// it reloads its units.
type execution struct {
	Path      string
	Arguments []string
	// MayFail is true if the unit doesn't fail with the command.
	MayFail bool
}

type environmentFile struct {
	Path     string
	Optional bool
}

// Properties returns the properties of an instance's unit.
func Properties(spec domain.MemberSpec, at Place) []dbus.Property {
	helper := func(script string, arguments ...string) []execution {
		return []execution{{"/bin/sh", append([]string{"sh", script, at.Record}, arguments...), true}}
	}
	properties := map[string]any{
		"Description": fmt.Sprintf("Trainyard: member %s of cluster %s", spec.Name, spec.Cluster),
		"Slice":       Slice(spec.Cluster, spec.Group),
		// With "exec", systemd 247 crashes if a unit with helpers ends at once.
		"Type":        "simple",
		"CollectMode": "inactive-or-failed",
		"Restart":     "no",

		"ExecStart":    []execution{{"/bin/sh", []string{"sh", at.Script}, false}},
		"ExecStop":     helper(at.Helpers.stop, fmt.Sprint(stopSignal(spec.Container.StopSignal))),
		"ExecStopPost": helper(at.Helpers.record),
		// The helpers run as root.
		"PermissionsStartOnly": true,

		"EnvironmentFiles":           []environmentFile{{at.Environment, true}},
		"StandardOutputFileToAppend": at.Log,
		"StandardErrorFileToAppend":  at.Log,
		"IgnoreSIGPIPE":              false,

		// In this mode, systemd kills at once whatever a command leaves running. But its stop signal reaches the
		// command alone, so the script sends the real one to all processes, and systemd a harmless one.
		"KillMode":         "mixed",
		"KillSignal":       int32(unix.SIGCONT),
		"SendSIGKILL":      true,
		"TimeoutStopUSec":  micros(time.Duration(spec.GracePeriod) + margin),
		"MemoryAccounting": true, // for the count of OOM kills
		"IPAccounting":     true, // no effect with cgroup v1
		"TasksMax":         uint64(math.MaxUint64),
		"OOMPolicy":        "kill",
	}
	if spec.Group != "" { // the agent, which has no group, may use all devices
		properties["DevicePolicy"] = "closed"
		properties["DeviceAllow"] = devices(at.GPUs)
	}
	hasGPUs := at.GPUs.All || len(at.GPUs.Minors) > 0
	if _, own := spec.Container.Ulimits["memlock"]; hasGPUs && at.Fabric && !own {
		properties["LimitMEMLOCK"] = uint64(math.MaxUint64) // an adapter's memory regions are locked
	}
	if at.Supervisor != "" {
		// On shutdown the supervisor stops first, so that it doesn't mistake its members' end for their own doing.
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
		// In this order, as setting the hard limit sets the soft one too.
		list = append(list,
			dbus.Property{Name: property, Value: godbus.MakeVariant(ulimit(limit.Hard))},
			dbus.Property{Name: property + "Soft", Value: godbus.MakeVariant(ulimit(limit.Soft))})
	}
	return list
}

// limitsOf returns the properties for limits; 0 means no limit.
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

// ulimit returns a limit in systemd's notation, where the maximum means unlimited.
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
