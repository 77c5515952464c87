package swarm

import (
	"strconv"

	"github.com/docker/docker/api/types/swarm"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
)

// identity tells whose a service or a task is.
type identity struct {
	cluster, group, role string
	// index is the member's; it is 0 where the service is pooled.
	index int
	hash  string
	run   int
	// pooled tells that the service stands for all members of an interchangeable role.
	pooled bool
}

// identityLabels are the labels of services and of their containers by which they are known again. Pooled ones have
// neither index nor member.
var identityLabels = []string{labelCluster, labelGroup, labelRole, labelIndex, labelMember, labelHash, labelRun}

// labels returns the labels of what has this identity.
func (id identity) labels() map[string]string {
	labels := map[string]string{
		labelCluster: id.cluster, labelGroup: id.group, labelRole: id.role, labelHash: id.hash, labelRun: strconv.Itoa(id.run),
	}
	if !id.pooled {
		labels[labelIndex], labels[labelMember] = strconv.Itoa(id.index), id.member(id.index)
	}
	return labels
}

// identityIn returns the identity that labels tell.
func identityIn(labels map[string]string) identity {
	return identity{
		cluster: labels[labelCluster], group: labels[labelGroup], role: labels[labelRole], index: numberIn(labels, labelIndex),
		hash: labels[labelHash], run: numberIn(labels, labelRun), pooled: labels[labelIndex] == "",
	}
}

// numberIn returns the number that a label holds. What is none from 0 on counts as 0: it reads as a label that somebody
// changed.
func numberIn(labels map[string]string, label string) int {
	number, err := strconv.ParseUint(labels[label], 10, 31)
	if err != nil {
		return 0
	}
	return int(number)
}

// identityOf returns the identity of a service: what its containers are labelled with, and what the service is labelled
// with where they are not. Only a restart changes the labels of containers, so they tell what runs.
func identityOf(service swarm.Service) identity {
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

// identityOfTask returns the identity of a task, and whether it is a member's.
func identityOfTask(task swarm.Task) (identity, bool) {
	if task.Spec.ContainerSpec == nil {
		return identity{}, false
	}
	id := identityIn(task.Spec.ContainerSpec.Labels)
	return id, id.cluster != "" && id.group != ""
}

// ours tells whether a service was made for the cluster.
func ours(service swarm.Service, cluster string) bool {
	return service.Spec.Labels[labelCluster] == cluster || containerLabels(service.Spec)[labelCluster] == cluster
}

func containerLabels(spec swarm.ServiceSpec) map[string]string {
	if spec.TaskTemplate.ContainerSpec == nil {
		return nil
	}
	return spec.TaskTemplate.ContainerSpec.Labels
}

// identityFor returns the identity of the service that a specification is rendered to.
func identityFor(spec domain.MemberSpec) identity {
	id := identity{
		cluster: spec.Cluster, group: spec.Group, role: spec.Role, index: spec.Index, hash: spec.Hash, run: spec.Run, pooled: spec.Shared,
	}
	if id.pooled {
		id.index = 0
	}
	return id
}

// serviceName returns the name of the service of a member.
func serviceName(spec domain.MemberSpec) string {
	if spec.Shared {
		return spec.Group + "-" + spec.Role
	}
	return spec.Name
}

// member returns the name of the member with an index.
func (id identity) member(index int) string { return domain.MemberName(id.group, id.role, index) }
