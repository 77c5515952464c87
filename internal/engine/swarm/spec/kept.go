package spec

import (
	"github.com/docker/docker/api/types/mount"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
)

// kindKept is the kind of the volume that outlives its member.
const kindKept = "kept"

// KeptVolume returns the name of the volume for the member's folder that outlives it.
func KeptVolume(cluster, member string) string { return ObjectName(cluster, kindKept, member) }

// keptMount returns the mount of the member's folder that outlives it.
func keptMount(member domain.MemberSpec) mount.Mount {
	return mount.Mount{
		Type: mount.TypeVolume, Source: KeptVolume(member.Cluster, member.Name), Target: literal(member.Kept),
		VolumeOptions: &mount.VolumeOptions{Labels: map[string]string{
			LabelCluster: member.Cluster, LabelGroup: member.Group, LabelKind: kindKept, LabelName: member.Name,
		}},
	}
}

// isKept reports whether a mount is that of the member's folder that outlives it.
func isKept(m mount.Mount, member domain.MemberSpec) bool {
	return m.Type == mount.TypeVolume && m.Source == KeptVolume(member.Cluster, member.Name)
}
