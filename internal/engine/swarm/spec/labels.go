package spec

import "github.com/trainyard/terraform-provider-trainyard/internal/domain"

// The labels of what Trainyard creates in a Swarm. Anything without the cluster's label is never touched. A service's
// containers carry LabelCluster, LabelGroup, LabelRole, LabelIndex, LabelMember, LabelHash and LabelRun too, so that
// they are recognised even if somebody removed the service's.
const (
	LabelPrefix  = domain.LabelPrefix
	LabelCluster = domain.LabelCluster
	LabelGroup   = domain.LabelGroup
	LabelRole    = domain.LabelRole
	LabelIndex   = domain.LabelIndex
	LabelMember  = domain.LabelMember
	LabelHash    = domain.LabelHash
	LabelRun     = domain.LabelRun
	// LabelSpec holds the part of the specification that can't be read back from the service, see [Seal].
	LabelSpec = LabelPrefix + "spec"
	// LabelStop is the reason why the member was stopped in its current run.
	LabelStop = LabelPrefix + "stop"
	// LabelRestarts counts the starts of this run after the first, and LabelStarted is the time of the first, once
	// there was another.
	LabelRestarts = LabelPrefix + "restarts"
	LabelStarted  = LabelPrefix + "started"
	// LabelRestarted is the ID of the task after whose end the member was last restarted.
	LabelRestarted = LabelPrefix + "restarted"
	// LabelStaged marks a service that was created and never started.
	LabelStaged = LabelPrefix + "staged"
	// LabelKind is the kind of the cluster's config object, such as an item's kind. LabelName is the name of the item,
	// file or secret.
	LabelKind = LabelPrefix + "kind"
	LabelName = LabelPrefix + "name"
	// LabelRevision is the revision of an item, or the number of an agents' key.
	LabelRevision = LabelPrefix + "revision"
	// LabelNodes holds the IDs of the nodes that were given an agents' key.
	LabelNodes = LabelPrefix + "nodes"
)
