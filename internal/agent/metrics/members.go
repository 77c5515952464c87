package metrics

import "github.com/prometheus/client_golang/prometheus"

// MemberInfo is a member that runs.
type MemberInfo struct {
	Cluster, Group, Role, Member string
	// ID is what agents know it by.
	ID string
}

var memberInfo = gauge("member_info", "1 for each member that runs, which agents tell of by this id.",
	"cluster", "group", "role", "member", "id")

// members tells which members run. Agents, which read no environment, don't know that.
type members func() []MemberInfo

// Describe describes nothing: what there is depends on the members.
func (m members) Describe(chan<- *prometheus.Desc) {}

// Collect tells of all members.
func (m members) Collect(to chan<- prometheus.Metric) {
	for _, of := range m() {
		whole(newTeller(to, of.Cluster, of.Group, of.Role, of.Member, of.ID), memberInfo, 1, new(1))
	}
}
