//go:build linux

package containers

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/mount"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
)

// Place is where an instance runs, and what is prepared for it.
type Place struct {
	Instance string
	// Variables are the instance's variables, in addition to the specification's.
	Variables map[string]string
	// Shown are files and directories of the host that the container sees, in addition to the specification's mounts.
	Shown []Shown
	// Fabric is true if the host has InfiniBand.
	Fabric bool
	Facts  Facts
}

// Shown is a file or directory of the host, and its path in a container.
type Shown struct {
	Source, Target string
	Writable       bool
}

const (
	// visibleGPUs is the variable that lists a member's GPUs.
	visibleGPUs = "NVIDIA_VISIBLE_DEVICES"
	infiniband  = "/dev/infiniband"
	// Docker counts CPUs in billionths.
	nano = 1e9
	mib  = 1 << 20
)

// render returns the configuration of a container.
func render(spec domain.MemberSpec, at Place) (*container.Config, *container.HostConfig) {
	c := spec.Container
	labels := spec.Labels()
	labels[domain.LabelInstance] = at.Instance
	grace := int(math.Ceil(time.Duration(spec.GracePeriod).Seconds()))
	config := &container.Config{
		Image: spec.Image, Entrypoint: spec.Command, Cmd: spec.Args, Env: environment(spec, at), Labels: labels,
		User: c.User, WorkingDir: spec.WorkingDir, StopSignal: c.StopSignal, StopTimeout: &grace,
		Healthcheck: healthcheck(c.HealthCheck),
	}
	host := &container.HostConfig{
		// Members are reached at their hosts' addresses, and share the hosts' ports.
		NetworkMode: "host",
		// The member's own restart policy applies after its end, to the exit code, which has to be there still.
		RestartPolicy: container.RestartPolicy{Name: container.RestartPolicyDisabled},
		Mounts:        mounts(spec, at),
		ShmSize:       c.ShmSizeMiB * mib,
	}
	host.CgroupParent = parent(spec.Cluster, spec.Group, at.Facts.Systemd)
	host.NanoCPUs = int64(math.Round(spec.Resources.Limits.CPUs * nano))
	host.Memory = spec.Resources.Limits.MemoryMiB * mib
	host.MemorySwap = host.Memory
	host.DeviceRequests = gpus(spec.Env[visibleGPUs])
	if at.Fabric {
		host.Devices = []container.DeviceMapping{
			{PathOnHost: infiniband, PathInContainer: infiniband, CgroupPermissions: "rwm"},
		}
	}
	for _, name := range slices.Sorted(maps.Keys(c.Ulimits)) {
		host.Ulimits = append(host.Ulimits,
			&container.Ulimit{Name: name, Soft: c.Ulimits[name].Soft, Hard: c.Ulimits[name].Hard})
	}
	if _, own := c.Ulimits["memlock"]; at.Fabric && len(host.DeviceRequests) > 0 && !own {
		// an adapter's memory regions are locked
		host.Ulimits = append(host.Ulimits, &container.Ulimit{Name: "memlock", Soft: -1, Hard: -1})
	}
	if c.Init {
		host.Init = &c.Init
	}
	if c.Logging != nil {
		host.LogConfig = container.LogConfig{Type: c.Logging.Driver, Config: c.Logging.Options}
	}
	return config, host
}

func environment(spec domain.MemberSpec, at Place) []string {
	variables := maps.Clone(spec.Env)
	if variables == nil {
		variables = map[string]string{}
	}
	maps.Copy(variables, at.Variables)
	var list []string
	for _, name := range slices.Sorted(maps.Keys(variables)) {
		list = append(list, name+"="+variables[name])
	}
	return list
}

// gpus returns the device request for a value of NVIDIA_VISIBLE_DEVICES. It needs neither a default runtime nor an
// Engine restarted with one.
func gpus(visible string) []container.DeviceRequest {
	devices := slices.DeleteFunc(strings.Split(visible, ","),
		func(name string) bool { return name == "" || name == "none" || name == "void" })
	request := container.DeviceRequest{DeviceIDs: devices, Capabilities: [][]string{{"gpu"}}}
	switch {
	case len(devices) == 0:
		return nil
	case slices.Contains(devices, "all"):
		request.DeviceIDs, request.Count = nil, -1
	}
	return []container.DeviceRequest{request}
}

var mountTypes = map[domain.MountType]mount.Type{
	domain.MountBind: mount.TypeBind, domain.MountVolume: mount.TypeVolume, domain.MountTmpfs: mount.TypeTmpfs,
}

func mounts(spec domain.MemberSpec, at Place) []mount.Mount {
	var list []mount.Mount
	for _, m := range spec.Mounts {
		rendered := mount.Mount{
			Type: mountTypes[cmp.Or(m.Type, domain.MountBind)], Source: m.Source, Target: m.Target,
			ReadOnly: m.ReadOnly,
		}
		if m.SizeMiB > 0 {
			rendered.TmpfsOptions = &mount.TmpfsOptions{SizeBytes: m.SizeMiB * mib}
		}
		if m.Driver != nil {
			rendered.VolumeOptions = &mount.VolumeOptions{
				DriverConfig: &mount.Driver{Name: m.Driver.Name, Options: m.Driver.Options},
			}
		}
		list = append(list, rendered)
	}
	for _, shown := range at.Shown {
		list = append(list,
			mount.Mount{Type: mount.TypeBind, Source: shown.Source, Target: shown.Target, ReadOnly: !shown.Writable})
	}
	return list
}

func healthcheck(check *domain.HealthCheck) *container.HealthConfig {
	if check == nil {
		return nil
	}
	duration := func(d *domain.Duration) time.Duration {
		if d == nil {
			return 0
		}
		return time.Duration(*d)
	}
	return &container.HealthConfig{
		Test:     append([]string{"CMD"}, check.Command...),
		Interval: duration(check.Interval), Timeout: duration(check.Timeout), StartPeriod: duration(check.StartPeriod),
		Retries: check.Retries,
	}
}
