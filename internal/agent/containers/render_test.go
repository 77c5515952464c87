//go:build linux

package containers

import (
	"bytes"
	"encoding/binary"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/mount"
	"github.com/google/go-cmp/cmp"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
)

func TestParent(t *testing.T) {
	for _, c := range []struct{ got, want string }{
		{parent("lab", "job", true), "trainyard-lab-job.slice"},
		{parent("lab", "job", false), "/trainyard.slice/trainyard-lab.slice/trainyard-lab-job.slice"},
		{parent("my-lab", "job", false), `/trainyard.slice/trainyard-my\x2dlab.slice/trainyard-my\x2dlab-job.slice`},
		{Name("lab", "job-worker-0", "ABC"), "trainyard-lab-job-worker-0-ABC"},
	} {
		if c.got != c.want {
			t.Errorf("%s\ninstead of %s", c.got, c.want)
		}
	}
}

func TestGPUs(t *testing.T) {
	capable := [][]string{{"gpu"}}
	for visible, want := range map[string][]container.DeviceRequest{
		"": nil, "none": nil, "void": nil,
		"GPU-1":       {{DeviceIDs: []string{"GPU-1"}, Capabilities: capable}},
		"GPU-1,GPU-2": {{DeviceIDs: []string{"GPU-1", "GPU-2"}, Capabilities: capable}},
		"all":         {{Count: -1, Capabilities: capable}},
	} {
		if diff := cmp.Diff(want, gpus(visible)); diff != "" {
			t.Errorf("%q (-want +got):\n%s", visible, diff)
		}
	}
}

// TestFabric: on a host with InfiniBand, a member can use it. With GPUs it may also lock unlimited memory, unless its
// specification sets a limit.
func TestFabric(t *testing.T) {
	spec := domain.MemberSpec{Env: map[string]string{visibleGPUs: "GPU-1"}}
	_, host := render(spec, Place{Fabric: true})
	if len(host.Devices) != 1 || host.Devices[0].PathOnHost != infiniband || len(host.Ulimits) != 1 ||
		host.Ulimits[0].Hard != -1 {
		t.Errorf("%+v", host)
	}
	spec.Container.Ulimits = map[string]domain.Ulimit{"memlock": {Soft: 1, Hard: 2}}
	if _, host = render(spec, Place{Fabric: true}); len(host.Ulimits) != 1 || host.Ulimits[0].Hard != 2 {
		t.Errorf("%+v", host)
	}
	if _, host = render(spec, Place{}); len(host.Devices) > 0 {
		t.Errorf("%+v", host)
	}
}

// TestMounts: a volume is created by its driver with its options, such as those of an NFS export.
func TestMounts(t *testing.T) {
	nfs := map[string]string{"type": "nfs", "o": "addr=nas,rw", "device": ":/export/data"}
	spec := domain.MemberSpec{Mounts: []domain.Mount{
		{Source: "/srv/data", Target: "/data", ReadOnly: true},
		{
			Type: domain.MountVolume, Source: "data", Target: "/nas",
			Driver: &domain.VolumeDriver{Name: "local", Options: nfs},
		},
		{Type: domain.MountVolume, Target: "/unnamed"},
		{Type: domain.MountTmpfs, Target: "/scratch", SizeMiB: 3},
	}}
	_, host := render(spec, Place{Shown: []Shown{{Source: "/var/lib/x", Target: "/run/x"}}})
	want := []mount.Mount{
		{Type: mount.TypeBind, Source: "/srv/data", Target: "/data", ReadOnly: true},
		{
			Type: mount.TypeVolume, Source: "data", Target: "/nas",
			VolumeOptions: &mount.VolumeOptions{DriverConfig: &mount.Driver{Name: "local", Options: nfs}},
		},
		{Type: mount.TypeVolume, Target: "/unnamed"},
		{Type: mount.TypeTmpfs, Target: "/scratch", TmpfsOptions: &mount.TmpfsOptions{SizeBytes: 3 << 20}},
		{Type: mount.TypeBind, Source: "/var/lib/x", Target: "/run/x", ReadOnly: true},
	}
	if diff := cmp.Diff(want, host.Mounts); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestReason: the kernel's message about an unsupported file system is explained.
func TestReason(t *testing.T) {
	const mounting = "error while mounting volume '/v/_data': failed to mount local volume: mount :/export/data:/v/_data, data: addr=10.0.0.9: "
	for text, want := range map[string]string{
		mounting +
			"no such device": `mounting + no such device; this host's kernel doesn't support the file system given as "type" in the volume's driver options. For NFS: sudo modprobe nfs`,
		mounting + "connection refused": "mounting + connection refused",
		"stat /dev/x: no such device":   "stat /dev/x: no such device",
	} {
		if got := reason(text); got != strings.Replace(want, "mounting + ", mounting, 1) {
			t.Errorf("%q is reported as %q", text, got)
		}
	}
}

// TestReadMessages: a malformed message ends the reading with an error.
func TestReadMessages(t *testing.T) {
	message := func(text string) string {
		head := make([]byte, header)
		binary.BigEndian.PutUint32(head[4:], uint32(len(text))) //nolint:gosec // short
		return string(head) + text
	}
	first := message("2026-11-25T02:10:20.000000001Z one line\n")
	for stream, whole := range map[string]bool{
		"": true, first: true, first + message("2026-11-25T02:10:21Z \n"): true, first[:5]: false, first[:20]: false,
		message("yesterday x\n"):           false,
		"\x01\x00\x00\x00\xff\xff\xff\xff": false,
	} {
		var output bytes.Buffer
		err := readMessages(io.MultiReader(strings.NewReader(stream)), func(at time.Time, text []byte) error {
			if at.Year() != 2026 {
				t.Errorf("%s", at)
			}
			output.Write(text)
			return nil
		})
		if (err == nil) != whole ||
			whole && strings.HasPrefix(stream, first) && !strings.HasPrefix(output.String(), "one line\n") {
			t.Errorf("%q: %q, %v", stream, &output, err)
		}
	}
}
