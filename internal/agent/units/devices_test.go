//go:build linux

package units

import (
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestFindGPUs: GPUs are found by UUID; one that the driver doesn't list allows all.
func TestFindGPUs(t *testing.T) {
	driver := t.TempDir()
	for bus, text := range map[string]string{
		"0000:01:00.0": "Model: \t\t Tesla V100\nGPU UUID: \t GPU-a\nBus Location: \t 0000:01:00.0\nDevice Minor: \t 3\n",
		"0000:02:00.0": "GPU UUID: \t GPU-b\nDevice Minor: \t 0\n",
	} {
		folder := filepath.Join(driver, "gpus", bus)
		if err := os.MkdirAll(folder, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(folder, "information"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for visible, want := range map[string]GPUs{
		"": {}, "void": {}, "none": {}, "GPU-a": {Minors: []string{"3"}}, "GPU-b,GPU-a": {Minors: []string{"0", "3"}},
		"all": {All: true}, "GPU-a,GPU-c": {All: true}, "0": {All: true},
	} {
		if diff := cmp.Diff(want, FindGPUs(visible, driver)); diff != "" {
			t.Errorf("%q (-want +got):\n%s", visible, diff)
		}
	}
	if found := FindGPUs("GPU-a", filepath.Join(driver, "none")); !found.All {
		t.Errorf("without a driver: %v", found)
	}
}

// TestDevices: an instance may use everything that is not a GPU, and only its own GPUs.
func TestDevices(t *testing.T) {
	allows := func(gpus GPUs, device string) bool {
		for _, allowed := range devices(gpus) {
			if matches, err := path.Match(strings.ReplaceAll(allowed.Device, "[!", "[^"), device); err != nil {
				t.Fatal(err)
			} else if matches {
				return true
			}
		}
		return false
	}
	none, own, all := GPUs{}, GPUs{Minors: []string{"1"}}, GPUs{All: true}
	for device, want := range map[string][3]bool{
		"char-mem": {true, true, true}, "char-misc": {true, true, true}, "char-infiniband_verbs": {true, true, true},
		"char-nvme": {true, true, true}, "char-nv": {false, false, false}, "char-drm": {true, true, true},
		"block-sd":    {true, true, true},
		"char-nvidia": {false, false, true}, "char-nvidia-frontend": {false, false, true},
		"char-nvidiactl":  {false, false, true},
		"char-nvidia-uvm": {false, true, true}, "char-nvidia-caps": {false, true, true},
		"/dev/char/195:255": {false, true, false},
		"/dev/char/195:1":   {false, true, false}, "/dev/char/195:0": {false, false, false},
	} {
		if got := [3]bool{allows(none, device), allows(own, device), allows(all, device)}; got != want {
			t.Errorf("%s: allowed to who has none, one and all: %v, want %v", device, got, want)
		}
	}
}
