package spec

import (
	"strconv"

	"github.com/docker/docker/api/types/swarm"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
)

// Identity identifies the member, or the interchangeable role, that a service or a task belongs to.
type Identity struct {
	Cluster, Group, Role string
	// Index is the member's; 0 if the service is pooled.
	Index int
	Hash  string
	Run   int
	// Pooled means that the service stands for all members of an interchangeable role.
	Pooled bool
}

// identityLabels are the labels of services and of their containers that hold the identity. Pooled ones have neither
// index nor member.
var identityLabels = []string{LabelCluster, LabelGroup, LabelRole, LabelIndex, LabelMember, LabelHash, LabelRun}

// Labels returns the labels for this identity.
func (id Identity) Labels() map[string]string {
	labels := map[string]string{
		LabelCluster: id.Cluster, LabelGroup: id.Group, LabelRole: id.Role, LabelHash: id.Hash,
		LabelRun: strconv.Itoa(id.Run),
	}
	if !id.Pooled {
		labels[LabelIndex], labels[LabelMember] = strconv.Itoa(id.Index), id.Member(id.Index)
	}
	return labels
}

// identityIn returns the identity in labels.
func identityIn(labels map[string]string) Identity {
	return Identity{
		Cluster: labels[LabelCluster], Group: labels[LabelGroup], Role: labels[LabelRole],
		Index: NumberIn(labels, LabelIndex),
		Hash:  labels[LabelHash], Run: NumberIn(labels, LabelRun), Pooled: labels[LabelIndex] == "",
	}
}

// NumberIn returns the number in a label, or 0 if it is not a number from 0 up: the label then reads as changed by
// somebody.
func NumberIn(labels map[string]string, label string) int {
	number, err := strconv.ParseUint(labels[label], 10, 31)
	if err != nil {
		return 0
	}
	return int(number)
}

// IdentityOf returns a service's identity by the labels of its containers, or by the service's own for each label that
// they lack. Changing container labels requires a restart, so these describe what runs.
func IdentityOf(service swarm.Service) Identity {
	return identityIn(identifying(service.Spec))
}

func identifying(spec swarm.ServiceSpec) map[string]string {
	labels := map[string]string{}
	for _, key := range identityLabels {
		value, found := containerLabels(spec)[key]
		if !found {
			value, found = spec.Labels[key]
		}
		if found {
			labels[key] = value
		}
	}
	return labels
}

// IdentityOfTask returns the identity of a task, and whether it is a member's.
func IdentityOfTask(task swarm.Task) (Identity, bool) {
	if task.Spec.ContainerSpec == nil {
		return Identity{}, false
	}
	id := identityIn(task.Spec.ContainerSpec.Labels)
	return id, id.Cluster != "" && id.Group != ""
}

// BelongsTo reports whether a service was made for a cluster.
func BelongsTo(service swarm.Service, cluster string) bool {
	return service.Spec.Labels[LabelCluster] == cluster || containerLabels(service.Spec)[LabelCluster] == cluster
}

func containerLabels(spec swarm.ServiceSpec) map[string]string {
	if spec.TaskTemplate.ContainerSpec == nil {
		return nil
	}
	return spec.TaskTemplate.ContainerSpec.Labels
}

// identityFor returns the identity of the service that a specification is rendered to.
func identityFor(spec domain.MemberSpec) Identity {
	id := Identity{
		Cluster: spec.Cluster, Group: spec.Group, Role: spec.Role, Index: spec.Index, Hash: spec.Hash, Run: spec.Run,
		Pooled: spec.Shared,
	}
	if id.Pooled {
		id.Index = 0
	}
	return id
}

// ServiceName returns the name of a member's service.
func ServiceName(spec domain.MemberSpec) string {
	if spec.Shared {
		return spec.Group + "-" + spec.Role
	}
	return spec.Name
}

// Member returns the name of the member with this index.
func (id Identity) Member(index int) string { return domain.MemberName(id.Group, id.Role, index) }
