package spec

import (
	"github.com/docker/docker/api/types/mount"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
)

// kindKept is what the volume of a member is that outlives it.
const kindKept = "kept"

// KeptVolume returns the name of the volume that holds the folder of a member that outlives it.
func KeptVolume(cluster, member string) string { return ObjectName(cluster, kindKept, member) }

// keptMount returns the mount of the folder of a member that outlives it.
func keptMount(member domain.MemberSpec) mount.Mount {
	return mount.Mount{
		Type: mount.TypeVolume, Source: KeptVolume(member.Cluster, member.Name), Target: literal(member.Kept),
		VolumeOptions: &mount.VolumeOptions{Labels: map[string]string{
			LabelCluster: member.Cluster, LabelGroup: member.Group, LabelKind: kindKept, LabelName: member.Name,
		}},
	}
}

// isKept reports whether a mount is that of the folder of a member that outlives it.
func isKept(m mount.Mount, member domain.MemberSpec) bool {
	return m.Type == mount.TypeVolume && m.Source == KeptVolume(member.Cluster, member.Name)
}
