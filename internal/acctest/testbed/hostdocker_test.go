//go:build linux

package testbed

import (
	"bytes"
	"context"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/pkg/stdcopy"

	"github.com/trainyard/terraform-provider-trainyard/internal/acctest"
)

// dockerHost is a host with a Docker Engine that has the image of testdata/peer. Tests leave no container on it.
func dockerHost(t testing.TB) *Host {
	t.Helper()
	host := SharedHosts(t, HostOptions{Hosts: 1, Docker: true}).Hosts[0]
	if err := host.Load(limited(t), peerRef, peerArchive(t)); err != nil {
		t.Fatal(err)
	}
	return host
}

// runPeer runs a peer in a container until the test ends.
func runPeer(t testing.TB, host *Host, with container.HostConfig, arguments ...string) (id string, err error) {
	t.Helper()
	ctx, engine := limited(t), host.Client()
	created, err := engine.ContainerCreate(ctx, &container.Config{Image: peerRef, Cmd: arguments}, &with, nil, nil, "")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := engine.ContainerRemove(context.WithoutCancel(ctx), created.ID,
			container.RemoveOptions{Force: true}); err != nil {
			t.Error(err)
		}
	})
	return created.ID, engine.ContainerStart(ctx, created.ID, container.StartOptions{})
}

// peerSays returns the output of a peer that ends, and its exit status.
func peerSays(t testing.TB, host *Host, with container.HostConfig, arguments ...string) (text string, status int64) {
	t.Helper()
	ctx, engine := limited(t), host.Client()
	id, err := runPeer(t, host, with, arguments...)
	if err != nil {
		t.Fatal(err)
	}
	ended, failed := engine.ContainerWait(ctx, id, container.WaitConditionNotRunning)
	select {
	case result := <-ended:
		status = result.StatusCode
	case err := <-failed:
		t.Fatal(err)
	}
	logs, err := engine.ContainerLogs(ctx, id, container.LogsOptions{ShowStdout: true, ShowStderr: true})
	if err != nil {
		t.Fatal(err)
	}
	defer logs.Close()
	var output bytes.Buffer
	if _, err := stdcopy.StdCopy(&output, &output, logs); err != nil {
		t.Fatal(err)
	}
	return strings.TrimPrefix(output.String(), "peer starts\n"), status
}

// wantLimits fails unless the host's engine can run a container in a slice, and enforces its memory limit.
func wantLimits(t testing.TB, host *Host) {
	t.Helper()
	limit := container.HostConfig{Resources: container.Resources{Memory: 64 << 20, CgroupParent: "trainyard-x.slice"}}
	id, err := runPeer(t, host, limit)
	if err != nil {
		t.Fatal(err)
	}
	state, err := host.Client().ContainerInspect(limited(t), id)
	if err != nil {
		t.Fatal(err)
	}
	process := strconv.Itoa(state.State.Pid)
	acctest.Eventually(t, "process "+process+" of the container to be the peer, no longer what starts it", func() bool {
		return on(t, host, "cat /proc/"+process+"/comm") == "peer"
	})
	groups := strings.Split(on(t, host, "cat /proc/"+process+"/cgroup"), "\n")
	if slices.ContainsFunc(groups, func(line string) bool {
		return !strings.Contains(line, "/trainyard.slice/trainyard-x.slice/docker-"+id)
	}) {
		t.Errorf("the container is in %s", groups)
	}
	if output, status := peerSays(t, host, limit, "take", "32"); status != 0 {
		t.Errorf("a container that takes less memory than it may: status %d: %s", status, output)
	}
	const killed = 128 + 9
	if output, status := peerSays(t, host, limit, "take", "128"); status != killed {
		t.Errorf("a container that takes more memory than it may: status %d: %s", status, output)
	}
}

func TestHostDocker(t *testing.T) {
	host := dockerHost(t)
	wantLimits(t, host)
	// NVIDIA's first device. Without a driver, opening it fails with a different error if the container is allowed to.
	const forbidden = "operation not permitted"
	if output, status := peerSays(t, host, container.HostConfig{}, "open", "195",
		"0"); !strings.Contains(output, forbidden) {
		t.Errorf("opening a device that the container was not given: status %d: %s", status, output)
	}
	given := container.HostConfig{Resources: container.Resources{DeviceCgroupRules: []string{"c 195:0 rwm"}}}
	if output, status := peerSays(t, host, given, "open", "195", "0"); strings.Contains(output, forbidden) {
		t.Errorf("opening a device that the container was given: status %d: %s", status, output)
	}
}

func TestHostDockerBoots(t *testing.T) {
	host := dockerHost(t)
	runs, err := runPeer(t, host,
		container.HostConfig{RestartPolicy: container.RestartPolicy{Name: container.RestartPolicyAlways}})
	if err != nil {
		t.Fatal(err)
	}
	for _, boot := range []struct {
		what string
		boot func() error
	}{
		{"power cut", func() error {
			if err := host.Kill(); err != nil {
				return err
			}
			return host.Start(limited(t))
		}},
		{"reboot", func() error { return host.Reboot(limited(t)) }},
	} {
		if err := boot.boot(); err != nil {
			t.Fatalf("%s: %v", boot.what, err)
		}
		acctest.Eventually(t, "a container to run again after the "+boot.what, func() bool {
			state, err := host.Client().ContainerInspect(limited(t), runs)
			return err == nil && state.State.Running
		})
		wantLimits(t, host)
	}
}

// TestHostDockerRestarts restarts the engine more often than Debian's unit allows.
func TestHostDockerRestarts(t *testing.T) {
	host := dockerHost(t)
	on(t, host, "for i in 1 2 3 4; do systemctl restart docker || exit; done")
	wantLimits(t, host)
}

func TestHostDockerStopped(t *testing.T) {
	host, ctx := dockerHost(t), limited(t)
	on(t, host, "systemctl mask --now docker.socket docker.service")
	gone := func(when string) {
		if _, err := host.Client().Ping(ctx); err == nil {
			t.Errorf("%s the engine answers", when)
		}
	}
	gone("masked,")
	if err := host.Kill(); err != nil {
		t.Fatal(err)
	}
	gone("without power")
	if err := host.Start(ctx); err != nil {
		t.Fatal(err)
	}
	gone("masked before the boot,")
	on(t, host, "systemctl unmask docker.socket docker.service && systemctl start docker.socket docker.service")
	if _, err := host.Client().Ping(ctx); err != nil {
		t.Error(err)
	}
}

func TestHostWithoutDocker(t *testing.T) {
	host := SharedHosts(t, two).Hosts[0]
	if host.Client() != nil {
		t.Error("there is a client")
	}
	if found := on(t, host,
		"command -v docker dockerd || ls -d /run/docker.sock /var/lib/docker 2> /dev/null || true"); found != "" {
		t.Errorf("it has %s", found)
	}
}

func TestHostNVIDIA(t *testing.T) {
	host, ctx := dockerHost(t), limited(t)
	request := func(r container.DeviceRequest) container.HostConfig {
		r.Capabilities = [][]string{{"gpu"}}
		return container.HostConfig{Resources: container.Resources{DeviceRequests: []container.DeviceRequest{r}}}
	}
	one := request(container.DeviceRequest{Driver: "nvidia", DeviceIDs: []string{"GPU-2"}})
	if _, err := runPeer(t, host, one); err == nil || !strings.Contains(err.Error(), "could not select device driver") {
		t.Errorf("GPUs without the toolkit: %v", err)
	}
	if err := host.InstallNVIDIA(ctx, "GPU-1", "GPU-2", "GPU-3"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for _, path := range []string{nvidiaHookPath, nvidiaDevicesPath} {
			if err := os.Remove(host.Root() + "/" + path); err != nil {
				t.Error(err)
			}
		}
		if _, err := host.Run(context.WithoutCancel(ctx), "systemctl restart docker"); err != nil {
			t.Error(err)
		}
	})
	for want, with := range map[string]container.HostConfig{
		"GPU-2\n":               one,
		"GPU-3\nGPU-1\n":        request(container.DeviceRequest{DeviceIDs: []string{"GPU-3", "GPU-1"}}),
		"GPU-1\nGPU-2\n":        request(container.DeviceRequest{Count: 2}),
		"GPU-1\nGPU-2\nGPU-3\n": request(container.DeviceRequest{Count: -1}),
	} {
		if output, status := peerSays(t, host, with, "show", VisibleDevices); output != want || status != 0 {
			t.Errorf("a container has GPUs %q, status %d; want %q", output, status, want)
		}
	}
	if output, status := peerSays(t, host, container.HostConfig{}, "show", VisibleDevices); status == 0 {
		t.Errorf("a container that requests no GPUs has %q", output)
	}
	_, err := runPeer(t, host, request(container.DeviceRequest{DeviceIDs: []string{"GPU-4"}}))
	if err == nil || !strings.Contains(err.Error(), "GPU-4: unknown device") {
		t.Errorf("a GPU that the host has not: %v", err)
	}
}
