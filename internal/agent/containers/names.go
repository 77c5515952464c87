//go:build linux

package containers

import (
	"path"

	"github.com/trainyard/terraform-provider-trainyard/internal/agent/units"
)

const prefix = "trainyard-"

// Name returns the container name of a member's instance. It is unique because instance IDs are.
func Name(cluster, member, instance string) string {
	return prefix + cluster + "-" + member + "-" + instance
}

// parent returns the cgroup parent of a member's container, in the Engine's notation: the slice of the group's units.
// Without systemd it is a path, in which each slice is below the one whose name it extends.
func parent(cluster, group string, systemd bool) string {
	slice := units.Slice(cluster, group)
	if systemd {
		return slice
	}
	above := "/"
	for at, letter := range slice {
		if letter == '-' {
			above = path.Join(above, slice[:at]+sliceSuffix)
		}
	}
	return path.Join(above, slice)
}

const sliceSuffix = ".slice"
