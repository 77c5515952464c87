package swarm

// The labels of what Trainyard creates in a Swarm. What has no label of the cluster is never touched.
const (
	labelPrefix = "trainyard."
	// labelCluster is on everything but records. A service's containers carry labelCluster, labelGroup, labelRole, labelIndex,
	// labelMember, labelHash and labelRun as well, so that they can be told even where somebody removed the service's.
	labelCluster = labelPrefix + "cluster"
	labelGroup   = labelPrefix + "group"
	labelRole    = labelPrefix + "role"
	labelIndex   = labelPrefix + "index"
	labelMember  = labelPrefix + "member"
	// labelPool is the name of a GPU pool, on its document.
	labelPool = labelPrefix + "pool"
	// labelPolicy is the key of an autoscaling policy, on its document.
	labelPolicy = labelPrefix + "policy"
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
	// labelKind tells what a config object of the cluster is.
	labelKind = labelPrefix + "kind"
	// labelRecordOf is the cluster of a record, and labelRecord its name: the lists of what a cluster has don't carry records along.
	labelRecordOf = labelPrefix + "record-of"
	labelRecord   = labelPrefix + "record"
	// labelRevision is that of a document or a record, or the number of a key of the agents.
	labelRevision = labelPrefix + "revision"
	// labelNodes holds the IDs of the nodes that were given a key of the agents.
	labelNodes = labelPrefix + "nodes"
)
