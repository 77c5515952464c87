package placement

import (
	"strings"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
)

// gpus returns devices of 16,000 MiB without links and without a known NUMA node.
func gpus(uuids ...string) []domain.Device {
	var devices []domain.Device
	for _, uuid := range uuids {
		devices = append(devices, domain.Device{UUID: uuid, MemoryMiB: 16_000})
	}
	return devices
}

// sized returns a device of another size.
func sized(uuid string, mib int64) domain.Device { return domain.Device{UUID: uuid, MemoryMiB: mib} }

// linked joins all of the devices by NVLink.
func linked(devices ...domain.Device) []domain.Device {
	for i := range devices {
		for j := range devices {
			if i != j {
				devices[i].Links = append(devices[i].Links, devices[j].UUID)
			}
		}
	}
	return devices
}

// onNode puts the devices on a NUMA node.
func onNode(node int, devices ...domain.Device) []domain.Device {
	for i := range devices {
		devices[i].NUMANode = &node
	}
	return devices
}

// pooled returns a pool with devices by host.
func pooled(spec domain.GPUPool, devices map[string][]domain.Device) domain.GPUPoolDocument {
	return domain.GPUPoolDocument{Spec: spec, Devices: devices}
}

// slotted returns a pool that divides all of its devices' memory into slots.
func slotted(mib int64) domain.GPUPool {
	none := 0.0
	return domain.GPUPool{Sharing: domain.Slots, MemoryMiBPerSlot: mib, ReservePercent: &none}
}

// onGPUs returns a role whose members ask for a number of devices of pool p, and for memory on each.
func onGPUs(count int, mib int64) domain.Role {
	return domain.Role{GPUs: &domain.GPURequest{Pool: "p", Count: &count, MemoryMiB: mib}}
}

// plainHosts returns hosts with plenty of everything.
func plainHosts(names ...string) map[string]domain.Host {
	hosts := map[string]domain.Host{}
	for _, name := range names {
		hosts[name] = host(name, capacity(64, 65536))
	}
	return hosts
}

// assigned parses assignments written as the host and its devices, such as "a: x,y".
func assigned(members map[string]string) map[string]domain.Assignment {
	all := map[string]domain.Assignment{}
	for member, text := range members {
		at, devices, _ := strings.Cut(text, ": ")
		all[member] = domain.Assignment{Host: at, Port: firstFreePort, GPUs: domain.DeviceSet(devices)}
	}
	return all
}

// texts formats assignments as assigned parses them.
func texts(assignments map[string]domain.Assignment) map[string]string {
	all := map[string]string{}
	for member, a := range assignments {
		all[member] = a.Host
		if a.GPUs != "" {
			all[member] += ": " + string(a.GPUs)
		}
	}
	return all
}

// otherOnGPUs returns another group, with the role w.
func otherOnGPUs(name string, r domain.Role, members ...string) domain.GroupDocument {
	document := domain.GroupDocument{Spec: domain.Group{Name: name, Roles: map[string]domain.Role{"w": r}}}
	byName := map[string]string{}
	for i, m := range members {
		byName[domain.MemberName(name, "w", i)] = m
	}
	document.Assignments = assigned(byName)
	return document
}

// placedOn returns the role with another placement.
func placedOn(r domain.Role, p domain.Placement) domain.Role {
	r.Placement = p
	return r
}

// requesting returns the role with resources.
func requesting(r domain.Role, resources domain.ResourceRequirements) domain.Role {
	r.Resources = resources
	return r
}

// publishingOnGPU returns a role whose members publish a port and ask for a device.
func publishingOnGPU(port string) domain.Role {
	r := onGPUs(1, 0)
	r.Template = publishing(port).Template
	return r
}
