package metrics

import (
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil"
)

// fullMembers returns running members.
func fullMembers() []MemberInfo {
	return []MemberInfo{
		{Cluster: "lab", Group: "mnist", Role: "ps", Member: "mnist-ps-0", ID: "f00d"},
		{Cluster: "lab", Group: "mnist", Role: "worker", Member: "mnist-worker-0", ID: "c0ffee"},
	}
}

const everyMember = `
trainyard_member_info{cluster="lab",group="mnist",id="c0ffee",member="mnist-worker-0",role="worker"} 1
trainyard_member_info{cluster="lab",group="mnist",id="f00d",member="mnist-ps-0",role="ps"} 1
`

// TestControllerHandler: a controller exports its policies and its members together.
func TestControllerHandler(t *testing.T) {
	for name, test := range map[string]struct {
		policies func() []PolicyStatus
		members  func() []MemberInfo
		want     string
	}{
		"both":         {fullPolicies, fullMembers, everyPolicy + everyMember[1:]},
		"only members": {func() []PolicyStatus { return nil }, fullMembers, everyMember},
		"only policies, as the members are not known": {fullPolicies, func() []MemberInfo { return nil }, everyPolicy},
	} {
		t.Run(name, func(t *testing.T) {
			if got := answer(t, ControllerHandler(test.policies, test.members)); got != test.want {
				t.Errorf("got:%swant:%s", got, test.want)
			}
		})
	}
}

// TestNamesOfMembers: the names satisfy Prometheus' own linter.
func TestNamesOfMembers(t *testing.T) {
	problems, err := testutil.CollectAndLint(members(fullMembers))
	if err != nil {
		t.Fatal(err)
	}
	for _, problem := range problems {
		t.Errorf("%s: %s", problem.Metric, problem.Text)
	}
}
