//go:build linux

package units

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// Driver is the directory where NVIDIA's driver describes its GPUs.
const Driver = "/proc/driver/nvidia"

// GPUs are the host's GPUs that an instance may use.
type GPUs struct {
	// Minors are the minor numbers of their device files.
	Minors []string
	// All is true if it may use all GPUs.
	All bool
}

// FindGPUs returns the GPUs that a value of NVIDIA_VISIBLE_DEVICES stands for, from the driver's directory. If it names
// one that the driver doesn't list, such as by index, all GPUs are allowed.
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

// minorsOf returns the minor numbers of GPUs' device files, by UUID.
func minorsOf(driver string) map[string]string {
	files, _ := filepath.Glob(filepath.Join(driver, "gpus", "*", "information")) // the pattern is valid
	minors := map[string]string{}
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			continue // as if the driver didn't list it
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

// deviceAllow is a device or a class of devices, and the access to it.
type deviceAllow struct{ Device, Rights string }

// The device files of NVIDIA's driver have a device class of their own, with one file that controls all GPUs.
const (
	nvidiaClass   = "nvidia"
	nvidiaFile    = "/dev/char/195:%s"
	nvidiaControl = "255"
	nvidiaModeset = "254"
)

// devices returns the devices that an instance may use: everything that is not a GPU, and its own GPUs. systemd can't
// express "all devices except", so this lists all classes that don't begin with "nvidia".
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
