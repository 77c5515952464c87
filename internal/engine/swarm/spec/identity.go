package spec

import (
	"strconv"

	"github.com/docker/docker/api/types/swarm"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
)

// Identity tells whose a service or a task is.
type Identity struct {
	Cluster, Group, Role string
	// Index is the member's; it is 0 where the service is pooled.
	Index int
	Hash  string
	Run   int
	// Pooled says that the service stands for all members of an interchangeable role.
	Pooled bool
}

// identityLabels are the labels of services and of their containers by which they are known again. Pooled ones have
// neither index nor member.
var identityLabels = []string{LabelCluster, LabelGroup, LabelRole, LabelIndex, LabelMember, LabelHash, LabelRun}

// Labels returns the labels of what has this identity.
func (id Identity) Labels() map[string]string {
	labels := map[string]string{
		LabelCluster: id.Cluster, LabelGroup: id.Group, LabelRole: id.Role, LabelHash: id.Hash, LabelRun: strconv.Itoa(id.Run),
	}
	if !id.Pooled {
		labels[LabelIndex], labels[LabelMember] = strconv.Itoa(id.Index), id.Member(id.Index)
	}
	return labels
}

// identityIn returns the identity that labels tell.
func identityIn(labels map[string]string) Identity {
	return Identity{
		Cluster: labels[LabelCluster], Group: labels[LabelGroup], Role: labels[LabelRole], Index: NumberIn(labels, LabelIndex),
		Hash: labels[LabelHash], Run: NumberIn(labels, LabelRun), Pooled: labels[LabelIndex] == "",
	}
}

// NumberIn returns the number that a label holds. What is none from 0 on counts as 0: it reads as a label that somebody
// changed.
func NumberIn(labels map[string]string, label string) int {
	number, err := strconv.ParseUint(labels[label], 10, 31)
	if err != nil {
		return 0
	}
	return int(number)
}

// IdentityOf returns the identity of a service: what its containers are labelled with, and what the service is labelled
// with where they are not. Only a restart changes the labels of containers, so they tell what runs.
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
		Cluster: spec.Cluster, Group: spec.Group, Role: spec.Role, Index: spec.Index, Hash: spec.Hash, Run: spec.Run, Pooled: spec.Shared,
	}
	if id.Pooled {
		id.Index = 0
	}
	return id
}

// ServiceName returns the name of the service of a member.
func ServiceName(spec domain.MemberSpec) string {
	if spec.Shared {
		return spec.Group + "-" + spec.Role
	}
	return spec.Name
}

// Member returns the name of the member with an index.
func (id Identity) Member(index int) string { return domain.MemberName(id.Group, id.Role, index) }
