package swarm

// The labels of what Trainyard creates in a Swarm. What has no label of the cluster is never touched.
const (
	labelPrefix = "trainyard."
	// labelCluster is on everything. A service's containers carry labelCluster, labelGroup, labelRole, labelIndex,
	// labelMember, labelHash and labelRun as well, so that they can be told even where somebody removed the service's.
	labelCluster = labelPrefix + "cluster"
	labelGroup   = labelPrefix + "group"
	labelRole    = labelPrefix + "role"
	labelIndex   = labelPrefix + "index"
	labelMember  = labelPrefix + "member"
	// labelHash and labelRun are those of the member's specification.
	labelHash = labelPrefix + "hash"
	labelRun  = labelPrefix + "run"
	// labelSpec holds what of the specification can't be read back from the service, see [seal].
	labelSpec = labelPrefix + "spec"
	// labelStop is the reason for which the member was stopped in its present run.
	labelStop = labelPrefix + "stop"
	// labelRestarts counts the starts after the first, in this run, and labelStarted is when the first was, once there
	// was another.
	labelRestarts = labelPrefix + "restarts"
	labelStarted  = labelPrefix + "started"
	// labelRestarted is the ID of the task after whose end the member was last restarted.
	labelRestarted = labelPrefix + "restarted"
	// labelStaged is on a service that was made and never started.
	labelStaged = labelPrefix + "staged"
	// labelKind is what a config object of the cluster is: an item's kind, for one. labelName is the item's name, or that of a file or a secret.
	labelKind = labelPrefix + "kind"
	labelName = labelPrefix + "name"
	// labelRevision is that of an item, or the number of a key of the agents.
	labelRevision = labelPrefix + "revision"
	// labelNodes holds the IDs of the nodes that were given a key of the agents.
	labelNodes = labelPrefix + "nodes"
)
