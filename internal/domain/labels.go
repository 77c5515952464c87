package domain

import "strconv"

// The labels of members' containers, and of the engine's objects for them. Objects without the cluster's label are
// never touched.
const (
	// LabelPrefix begins all labels.
	LabelPrefix = "trainyard."
	// LabelCluster is on everything.
	LabelCluster = LabelPrefix + "cluster"
	LabelGroup   = LabelPrefix + "group"
	LabelRole    = LabelPrefix + "role"
	LabelIndex   = LabelPrefix + "index"
	LabelMember  = LabelPrefix + "member"
	// LabelHash and LabelRun are those of the member's specification.
	LabelHash = LabelPrefix + "hash"
	LabelRun  = LabelPrefix + "run"
	// LabelInstance is on containers that Trainyard itself starts.
	LabelInstance = LabelPrefix + "instance"
)

// Labels returns the labels that identify a member with identity.
func (s MemberSpec) Labels() map[string]string {
	return map[string]string{
		LabelCluster: s.Cluster, LabelGroup: s.Group, LabelRole: s.Role, LabelIndex: strconv.Itoa(s.Index),
		LabelMember: s.Name,
		LabelHash:   s.Hash, LabelRun: strconv.Itoa(s.Run),
	}
}
