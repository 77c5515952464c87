package spec

import "github.com/trainyard/terraform-provider-trainyard/internal/domain"

// The labels of what Trainyard creates in a Swarm. What has no label of the cluster is never touched. A service's
// containers carry LabelCluster, LabelGroup, LabelRole, LabelIndex, LabelMember, LabelHash and LabelRun as well, so
// that they can be told even where somebody removed the service's.
const (
	LabelPrefix  = domain.LabelPrefix
	LabelCluster = domain.LabelCluster
	LabelGroup   = domain.LabelGroup
	LabelRole    = domain.LabelRole
	LabelIndex   = domain.LabelIndex
	LabelMember  = domain.LabelMember
	LabelHash    = domain.LabelHash
	LabelRun     = domain.LabelRun
	// LabelSpec holds what of the specification can't be read back from the service, see [Seal].
	LabelSpec = LabelPrefix + "spec"
	// LabelStop is the reason for which the member was stopped in its present run.
	LabelStop = LabelPrefix + "stop"
	// LabelRestarts counts the starts after the first, in this run, and LabelStarted is when the first was, once there
	// was another.
	LabelRestarts = LabelPrefix + "restarts"
	LabelStarted  = LabelPrefix + "started"
	// LabelRestarted is the ID of the task after whose end the member was last restarted.
	LabelRestarted = LabelPrefix + "restarted"
	// LabelStaged is on a service that was made and never started.
	LabelStaged = LabelPrefix + "staged"
	// LabelKind is what a config object of the cluster is: an item's kind, for one. LabelName is the item's name, or
	// that of a file or a secret.
	LabelKind = LabelPrefix + "kind"
	LabelName = LabelPrefix + "name"
	// LabelRevision is that of an item, or the number of a key of the agents.
	LabelRevision = LabelPrefix + "revision"
	// LabelNodes holds the IDs of the nodes that were given a key of the agents.
	LabelNodes = LabelPrefix + "nodes"
)
