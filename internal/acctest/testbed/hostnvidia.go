//go:build linux

package testbed

import (
	"context"
	_ "embed"
	"fmt"
	"strings"
)

// VisibleDevices is the file that a container with GPUs has on a host with InstallNVIDIA: their UUIDs, one per line.
const VisibleDevices = "/etc/nvidia-visible-devices"

const (
	nvidiaHookPath    = "usr/bin/nvidia-container-runtime-hook"
	nvidiaDevicesPath = "etc/nvidia-devices" // the devices that the hook knows
)

//go:embed nvidiahook.py
var nvidiaHook string

// InstallNVIDIA installs a substitute for NVIDIA's container toolkit on a host with these GPUs, given by UUID, and
// restarts the Docker Engine, which looks for the toolkit at startup. A container that requests GPUs gets the file
// VisibleDevices instead of devices; one that requests GPUs that the host doesn't have fails to start.
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
