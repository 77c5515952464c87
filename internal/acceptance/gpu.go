//go:build linux

package acceptance

import "github.com/trainyard/terraform-provider-trainyard/internal/agent/nvml/fakenvml"

// A40 returns an idle A40.
func A40() fakenvml.Device {
	return fakenvml.Device{
		UUID: "GPU-a40a40a4-0000-4000-8000-000000000000", Name: "NVIDIA A40", PCIBusID: "00000000:3B:00.0",
		MemoryMiB: 46068,
	}
}
