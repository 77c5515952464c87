//go:build linux

package containers

import (
	"path"

	"github.com/trainyard/terraform-provider-trainyard/internal/agent/units"
)

const prefix = "trainyard-"

// Name returns the name of the container of a member's instance. No two have the same, as instances have not.
func Name(cluster, member, instance string) string {
	return prefix + cluster + "-" + member + "-" + instance
}

// parent returns the control group that the container of a member is in, as an Engine calls it: that of the group's
// units. Without systemd it is a path, on which each slice is in the one whose name it continues.
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
