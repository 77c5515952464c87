//go:build linux

package testbed

import (
	"context"
	_ "embed"
	"fmt"
	"strings"
)

// VisibleDevices is the file in a container that got GPUs on a host with InstallNVIDIA: their UUIDs, a line each.
const VisibleDevices = "/etc/nvidia-visible-devices"

const (
	nvidiaHookPath    = "usr/bin/nvidia-container-runtime-hook"
	nvidiaDevicesPath = "etc/nvidia-devices" // what the hook knows
)

//go:embed nvidiahook.py
var nvidiaHook string

// InstallNVIDIA installs what stands for NVIDIA's container toolkit on a host with these GPUs, given by UUID, and
// restarts the Docker Engine, which looks for it when it starts. A container that requests GPUs gets a file
// VisibleDevices in place of devices; one that requests others than the host's fails to start.
func (h *Host) InstallNVIDIA(ctx context.Context, devices ...string) error {
	for _, f := range []file{
		{path: nvidiaDevicesPath, content: strings.Join(devices, "\n") + "\n"},
		{path: nvidiaHookPath, content: nvidiaHook, mode: 0o755},
	} {
		if err := f.write(h.Root()); err != nil {
			return fmt.Errorf("NVIDIA's container toolkit on %s: %w", h.Name, err)
		}
	}
	_, err := h.Run(ctx, "systemctl try-restart docker")
	return err
}
