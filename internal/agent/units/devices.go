//go:build linux

package units

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// Driver is where NVIDIA's driver tells of its GPUs.
const Driver = "/proc/driver/nvidia"

// GPUs are those of a host that an instance may reach.
type GPUs struct {
	// Minors are the numbers of their device files.
	Minors []string
	// All is true where it may reach all.
	All bool
}

// FindGPUs returns the GPUs that a value of NVIDIA_VISIBLE_DEVICES stands for, by what the driver tells in a folder.
// All GPUs may be reached where one is named that the driver doesn't tell of, as by its number.
func FindGPUs(visible, driver string) GPUs {
	var found GPUs
	minors := minorsOf(driver)
	for name := range strings.SplitSeq(visible, ",") {
		switch minor, known := minors[name]; {
		case name == "" || name == "none" || name == "void":
		case !known:
			return GPUs{All: true}
		default:
			found.Minors = append(found.Minors, minor)
		}
	}
	return found
}

// minorsOf returns the numbers of the device files of GPUs, by their UUIDs.
func minorsOf(driver string) map[string]string {
	files, _ := filepath.Glob(filepath.Join(driver, "gpus", "*", "information")) // the pattern is good
	minors := map[string]string{}
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			continue // as if the driver didn't tell of it
		}
		var uuid, minor string
		for line := range strings.Lines(string(content)) {
			switch key, value, _ := strings.Cut(line, ":"); strings.TrimSpace(key) {
			case "GPU UUID":
				uuid = strings.TrimSpace(value)
			case "Device Minor":
				minor = strings.TrimSpace(value)
			}
		}
		if uuid != "" && minor != "" {
			minors[uuid] = minor
		}
	}
	return minors
}

// deviceAllow is a device, or a class of them, and what may be done with it.
type deviceAllow struct{ Device, Rights string }

// The device files of NVIDIA's driver have a class of their own, in which one file controls all.
const (
	nvidiaClass   = "nvidia"
	nvidiaFile    = "/dev/char/195:%s"
	nvidiaControl = "255"
	nvidiaModeset = "254"
)

// devices returns what an instance may reach: all that is no GPU, and its own GPUs. An exception from all devices can't
// be said to systemd; so the classes are named that are none of NVIDIA's.
func devices(gpus GPUs) []deviceAllow {
	names := []string{"block-*"}
	for i, letter := range nvidiaClass {
		names = append(names, fmt.Sprintf("char-%s[!%c]*", nvidiaClass[:i], letter))
	}
	switch {
	case gpus.All:
		names = append(names, "char-"+nvidiaClass+"*")
	case len(gpus.Minors) > 0:
		names = append(names, "char-nvidia-uvm", "char-nvidia-caps*", "char-nvidia-nvswitch", "char-nvidia-nvlink")
		for _, minor := range append([]string{nvidiaControl, nvidiaModeset}, gpus.Minors...) {
			names = append(names, fmt.Sprintf(nvidiaFile, minor))
		}
	}
	allowed := make([]deviceAllow, len(names))
	for i, name := range names {
		allowed[i] = deviceAllow{name, "rwm"}
	}
	return allowed
}
