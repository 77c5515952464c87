package metrics

import "github.com/prometheus/client_golang/prometheus"

// MemberInfo is a running member.
type MemberInfo struct {
	Cluster, Group, Role, Member string
	// ID is what agents call it.
	ID string
}

var memberInfo = gauge("member_info", "1 for each running member. Agents report its usage under the same id.",
	"cluster", "group", "role", "member", "id")

// members returns the running members. Agents can't, as they read no environment variables.
type members func() []MemberInfo

// Describe describes nothing, as the metrics depend on the members.
func (m members) Describe(chan<- *prometheus.Desc) {}

// Collect exports all members.
func (m members) Collect(to chan<- prometheus.Metric) {
	for _, of := range m() {
		whole(newSeries(to, of.Cluster, of.Group, of.Role, of.Member, of.ID), memberInfo, 1, new(1))
	}
}
