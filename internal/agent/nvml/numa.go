package nvml

import (
	"fmt"
	"math/bits"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// pciDevices is the kernel's folder of PCI devices.
const pciDevices = "/sys/bus/pci/devices"

// numaNode returns the memory node nearest to a device; nil if neither the driver nor the kernel knows one. That is not
// what nvmlDeviceGetNumaNodeId returns, which is the node of the GPU's own memory on systems where it is one, such as
// Grace Hopper.
func (l *look) numaNode(d device) *int {
	if nodes, err := try(l, "nvmlDeviceGetMemoryAffinity", d.getMemoryAffinity); err == nil {
		if node, only := onlyNode(nodes); only {
			return &node
		}
	}
	return kernelNUMANode(pciDevices, l.known.pciBusID)
}

// kernelNUMANode returns the memory node of a device as reported by the kernel; nil if it reports none.
func kernelNUMANode(devices, busID string) *int {
	text, err := os.ReadFile(filepath.Join(devices, kernelBusID(busID), "numa_node"))
	if err != nil {
		return nil
	}
	node, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil || node < 0 {
		return nil
	}
	return &node
}

// onlyNode returns the only node of a set, 64 per number.
func onlyNode(nodes []uint) (node int, only bool) {
	for i, word := range nodes {
		if word == 0 {
			continue
		}
		if only || bits.OnesCount(word) > 1 {
			return 0, false
		}
		node, only = i*bits.UintSize+bits.TrailingZeros(word), true
	}
	return node, only
}

// kernelBusID returns a PCI bus ID in the kernel's format: "00000000:3B:00.0" is "0000:3b:00.0". It returns "" for an
// invalid one.
func kernelBusID(id string) string {
	var domain, bus, device, function uint32
	if n, err := fmt.Sscanf(id, "%x:%x:%x.%x", &domain, &bus, &device, &function); n != 4 || err != nil {
		return ""
	}
	return fmt.Sprintf("%04x:%02x:%02x.%x", domain, bus, device, function)
}
