package topology

import (
	"fmt"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
)

// group returns a valid group with these numbers of members by role.
func group(framework string, counts map[string]int) domain.Group {
	g := domain.Group{
		Cluster:   "lab",
		Name:      "mnist",
		Framework: framework,
		Template:  domain.Template{Command: []string{"train"}},
		Roles:     map[string]domain.Role{},
	}
	for name, n := range counts {
		g.Roles[name] = domain.Role{Replicas: &n}
	}
	return g
}

// place lays a group out with each member on its own host, <role><index>, at port 2222.
func place(g domain.Group) *Layout {
	members := Expand(g, Counts(g, nil), nil)
	for i, m := range members {
		host := m.Role + strconv.Itoa(m.Index)
		members[i].Host, members[i].Address, members[i].Port = host, host+":2222", 2222
	}
	return NewLayout(g, members, func(member, _ string) string { return "/files/" + member })
}

// specOf renders the specification of a member by its role and index.
func specOf(t *testing.T, l *Layout, role string, index int) domain.MemberSpec {
	t.Helper()
	for i, m := range l.members {
		if m.Role == role && m.Index == index {
			spec, err := l.Spec(i)
			if err != nil {
				t.Fatalf("spec of %s: %v", m.Name, err)
			}
			return spec
		}
	}
	t.Fatalf("there is no %s %d", role, index)
	return domain.MemberSpec{}
}

func TestCounts(t *testing.T) {
	g := domain.Group{Roles: map[string]domain.Role{
		"fixed": {Replicas: new(4)}, "none": {Replicas: new(0)}, "scaled": {}, "new": {},
	}}
	got := Counts(g, map[string]int{"fixed": 9, "scaled": 7, "gone": 3})
	want := map[string]int{"fixed": 4, "none": 0, "scaled": 7, "new": 1}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("counts (-want +got):\n%s", diff)
	}
}

func TestExpand(t *testing.T) {
	g := group("tensorflow", map[string]int{"worker": 2, "ps": 1, "chief": 0})
	got := Expand(g, Counts(g, nil), nil)
	want := []domain.Member{
		{Name: "mnist-ps-0", Role: "ps", Index: 0},
		{Name: "mnist-worker-0", Role: "worker", Index: 0},
		{Name: "mnist-worker-1", Role: "worker", Index: 1},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("members (-want +got):\n%s", diff)
	}
}

func TestStopOrder(t *testing.T) {
	for _, test := range []struct {
		framework string
		counts    map[string]int
		want      [][]string
	}{
		{"tensorflow", map[string]int{"worker": 2, "ps": 1, "chief": 1}, [][]string{{"chief", "worker"}, {"ps"}}},
		{"mpi", map[string]int{"worker": 2, "launcher": 1}, [][]string{{"launcher"}, {"worker"}}},
		{"spark", map[string]int{"worker": 2, "master": 1}, [][]string{{"master", "worker"}}},
		{"none", map[string]int{"b": 1, "a": 1}, [][]string{{"a", "b"}}},
	} {
		if diff := cmp.Diff(test.want, StopOrder(group(test.framework, test.counts))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", test.framework, diff)
		}
	}
}

func TestClusterSpec(t *testing.T) {
	for _, test := range []struct {
		framework string
		counts    map[string]int
		want      map[string]string
	}{
		{"tensorflow", map[string]int{"ps": 2, "worker": 1, "evaluator": 1, "chief": 0},
			map[string]string{"ps": "ps0:2222,ps1:2222", "worker": "worker0:2222", "evaluator": "evaluator0:2222"}},
		{"spark", map[string]int{"master": 1, "worker": 3}, map[string]string{"master": "master0:2222"}},
	} {
		if diff := cmp.Diff(test.want, place(group(test.framework, test.counts)).ClusterSpec()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", test.framework, diff)
		}
	}
}

func TestClusterSpecIsInTheOrderOfTheIndexes(t *testing.T) {
	l := NewLayout(group("none", map[string]int{"a": 3}), []domain.Member{
		{Name: "mnist-a-2", Role: "a", Index: 2, Address: "h:3"},
		{Name: "mnist-a-0", Role: "a", Index: 0, Address: "h:1"},
		{Name: "mnist-a-1", Role: "a", Index: 1, Address: "h:2"},
	}, nil)
	if got, want := l.ClusterSpec()["a"], "h:1,h:2,h:3"; got != want {
		t.Errorf("cluster spec %q, want %q", got, want)
	}
}

func TestRule(t *testing.T) {
	for name, test := range map[string]struct {
		framework  string
		counts     map[string]int
		completion domain.Completion
		want       domain.CompletionRule
	}{
		"tensorflow: chief 0": {"tensorflow", map[string]int{"chief": 1, "worker": 2, "ps": 1}, domain.Completion{},
			domain.CompletionRule{When: "chief", Members: []string{"mnist-chief-0"}, StopRest: true}},
		"tensorflow: master 0": {"tensorflow", map[string]int{"master": 1, "worker": 2}, domain.Completion{},
			domain.CompletionRule{When: "chief", Members: []string{"mnist-master-0"}, StopRest: true}},
		"tensorflow: worker 0": {"tensorflow", map[string]int{"chief": 0, "worker": 2, "ps": 1}, domain.Completion{},
			domain.CompletionRule{When: "chief", Members: []string{"mnist-worker-0"}, StopRest: true}},
		"tensorflow: all but who serves": {"tensorflow", map[string]int{"worker": 2, "ps": 1, "evaluator": 1},
			domain.Completion{When: "all"},

			domain.CompletionRule{When: "all", Members: []string{"mnist-worker-0", "mnist-worker-1"}, StopRest: true}},
		"tensorflow_v1": {"tensorflow_v1", map[string]int{"worker": 2, "ps": 1}, domain.Completion{},
			domain.CompletionRule{When: "chief", Members: []string{"mnist-worker-0"}, StopRest: true}},
		"pytorch: all": {"pytorch", map[string]int{"master": 1, "worker": 1}, domain.Completion{},
			domain.CompletionRule{When: "all", Members: []string{"mnist-master-0", "mnist-worker-0"}, StopRest: true}},
		"jax: all": {"jax", map[string]int{"worker": 2}, domain.Completion{},
			domain.CompletionRule{When: "all", Members: []string{"mnist-worker-0", "mnist-worker-1"}, StopRest: true}},
		"mpi: launcher": {"mpi", map[string]int{"launcher": 1, "worker": 2}, domain.Completion{},
			domain.CompletionRule{When: "chief", Members: []string{"mnist-launcher-0"}, StopRest: true}},
		"spark: service": {"spark", map[string]int{"master": 1, "worker": 2}, domain.Completion{},
			domain.CompletionRule{When: "never", StopRest: true}},
		"spark: job": {"spark", map[string]int{"master": 1, "worker": 2, "submit": 1}, domain.Completion{},
			domain.CompletionRule{When: "chief", Members: []string{"mnist-submit-0"}, StopRest: true}},
		"ray: service": {"ray", map[string]int{"head": 1}, domain.Completion{},
			domain.CompletionRule{When: "never", StopRest: true}},
		"none: all": {"none", map[string]int{"a": 1, "b": 2}, domain.Completion{},
			domain.CompletionRule{
				When: "all", Members: []string{"mnist-a-0", "mnist-b-0", "mnist-b-1"}, StopRest: true,
			}},
		"none: the usual chief": {"none", map[string]int{"a": 1, "master": 1, "worker": 2},
			domain.Completion{When: "chief"},

			domain.CompletionRule{When: "chief", Members: []string{"mnist-master-0"}, StopRest: true}},
		"none: the only role": {"none", map[string]int{"trial": 3}, domain.Completion{When: "chief"},
			domain.CompletionRule{When: "chief", Members: []string{"mnist-trial-0"}, StopRest: true}},
		"none: no chief": {"none", map[string]int{"a": 1, "b": 2}, domain.Completion{When: "chief"},
			domain.CompletionRule{When: "chief", StopRest: true}},
		"the user's chief": {"none", map[string]int{"a": 1, "b": 2},
			domain.Completion{When: "chief", Roles: []string{"b"}},

			domain.CompletionRule{When: "chief", Members: []string{"mnist-b-0"}, StopRest: true}},
		"the user's roles": {"tensorflow", map[string]int{"worker": 1, "evaluator": 1},
			domain.Completion{When: "any", Roles: []string{"evaluator"}},

			domain.CompletionRule{When: "any", Members: []string{"mnist-evaluator-0"}, StopRest: true}},
		"never, with all the rest": {"tensorflow", map[string]int{"worker": 1},
			domain.Completion{When: "never", Deadline: new(domain.Duration(5)), StopRest: new(false)},
			domain.CompletionRule{When: "never", Deadline: 5}},
		"unknown framework": {"caffe", map[string]int{"worker": 1}, domain.Completion{},
			domain.CompletionRule{When: "never", StopRest: true}},
	} {
		t.Run(name, func(t *testing.T) {
			g := group(test.framework, test.counts)
			g.Completion = test.completion
			if diff := cmp.Diff(test.want, Rule(g, Expand(g, Counts(g, nil), nil))); diff != "" {
				t.Errorf("rule (-want +got):\n%s", diff)
			}
		})
	}
}

// TestSpecSaysWhereInterchangeableMembersMayBe checks that only interchangeable members carry placement constraints;
// hosts for the others have been chosen.
func TestSpecSaysWhereInterchangeableMembersMayBe(t *testing.T) {
	g := group("spark", map[string]int{"master": 1, "worker": 1})
	placement := domain.Placement{Labels: map[string]string{"gpu": "t4"}, Hosts: []string{"a"}}
	for name, r := range g.Roles {
		r.Placement = placement
		g.Roles[name] = r
	}
	l := place(g)
	if got := specOf(t, l, "worker", 0); !got.Interchangeable || !Interchangeable(g, "worker") ||
		!cmp.Equal(got.Placement, placement) {
		t.Errorf("an interchangeable member has the placement %+v", got.Placement)
	}
	if got := specOf(t, l, "master", 0); got.Interchangeable || Interchangeable(g, "master") ||
		!cmp.Equal(got.Placement, domain.Placement{}) {
		t.Errorf("an indexed member has the placement %+v", got.Placement)
	}
}

func TestSpec(t *testing.T) {
	g := group("none", map[string]int{"ps": 1, "worker": 2})
	g.Template = domain.Template{
		Image: "trainer:1.2", Command: []string{"train"}, Args: []string{"--quiet"},
		Env: map[string]string{"LEVEL": "info", "BATCH": "20"}, WorkingDir: "/work",
		Container: &domain.Container{Init: true},
	}
	g.Roles["worker"] = domain.Role{
		Replicas: new(2),
		Template: domain.Template{
			Args:   []string{"--ps={{ address \"ps\" 0 }}", "--index={{ .Index }}"},
			Env:    map[string]string{"BATCH": "64", "CUDA_VISIBLE_DEVICES": "0"},
			Mounts: []domain.Mount{{Source: "/data", Target: "/data", ReadOnly: true}},
		},
		Resources:   domain.ResourceRequirements{CPUs: 1.5, MemoryMiB: 512, Limits: domain.Resources{MemoryMiB: 1024}},
		Restart:     domain.Restart{Condition: domain.RestartAlways},
		GracePeriod: new(domain.Duration(3)),
	}
	l := place(g)
	want := domain.MemberSpec{
		Cluster: "lab", Group: "mnist", Role: "worker", Index: 1, Name: "mnist-worker-1",
		Host: "worker1", Address: "worker1:2222", Hash: l.Hash(2),
		Image: "trainer:1.2", Command: []string{"train"}, Args: []string{"--ps=ps0:2222", "--index=1"},
		WorkingDir: "/work",
		Env: map[string]string{
			"LEVEL": "info", "BATCH": "64", "CUDA_VISIBLE_DEVICES": "0",
			"TRAINYARD_CLUSTER": "lab", "TRAINYARD_GROUP": "mnist", "TRAINYARD_ROLE": "worker", "TRAINYARD_INDEX": "1",
			"TRAINYARD_MEMBER": "mnist-worker-1", "TRAINYARD_HOST": "worker1", "TRAINYARD_ADDRESS": "worker1:2222",
			"TRAINYARD_PORT":         "2222",
			"TRAINYARD_CLUSTER_SPEC": `{"ps":["ps0:2222"],"worker":["worker0:2222","worker1:2222"]}`,
		},
		Mounts: []domain.Mount{{Source: "/data", Target: "/data", ReadOnly: true}},
		Resources: domain.ResourceRequirements{
			CPUs: 1.5, MemoryMiB: 512, Limits: domain.Resources{CPUs: 1.5, MemoryMiB: 1024},
		},
		Restart: domain.RestartRule{
			Condition: "always", Delay: domain.DefaultRestartDelay, Final: domain.DefaultFinalExitCodes,
		},
		GracePeriod: 3,
		Container:   domain.Container{Init: true},
	}
	if diff := cmp.Diff(want, specOf(t, l, "worker", 1)); diff != "" {
		t.Errorf("spec (-want +got):\n%s", diff)
	}
	if got, want := specOf(t, l, "ps", 0).Env["CUDA_VISIBLE_DEVICES"], "-1"; got != want {
		t.Errorf("CUDA_VISIBLE_DEVICES=%q, want %q where the user sets none", got, want)
	}
}

func TestSpecOfAGroupThatRestartsAsAWhole(t *testing.T) {
	g := group("pytorch", map[string]int{"worker": 2})
	g.RestartScope = domain.ScopeGroup
	if got := specOf(t, place(g), "worker", 0).Restart.Condition; got != domain.RestartByGroup {
		t.Errorf("the engine restarts a member %q, and must leave it to the controller", got)
	}
}

func TestSpecFailsWhereLinuxWould(t *testing.T) {
	l := place(group("tensorflow", map[string]int{"worker": 9000}))
	if _, err := l.Spec(0); err == nil {
		t.Errorf("a TF_CONFIG of %d bytes was accepted", len(TFConfig(l.peers, "worker", 0)))
	} else if want := fmt.Sprintf("at most %d", maxString); !contains(err.Error(), "TF_CONFIG", "of 9000", want) {
		t.Errorf("error does not say what, why and how much: %v", err)
	}
}

func TestSpecFailsWhereTheGroupIsNotValid(t *testing.T) {
	for name, test := range map[string]struct {
		change func(g *domain.Group)
		says   string
	}{
		"unknown framework": {func(g *domain.Group) { g.Framework = "caffe" }, `"caffe"`},
		"wrong syntax":      {func(g *domain.Group) { g.Args = []string{"{{"} }, "args[0]"},
		"wrong member":      {func(g *domain.Group) { g.Args = []string{`{{ address "a" 1 }}`} }, "args[0]"},
	} {
		g := group("none", map[string]int{"a": 1})
		test.change(&g)
		if _, err := place(g).Spec(0); err == nil || !contains(err.Error(), test.says) {
			t.Errorf("%s: error %v, want one that names %s", name, err, test.says)
		}
	}
	stray := NewLayout(group("none", map[string]int{"a": 1}), []domain.Member{{Name: "mnist-b-0", Role: "b"}}, nil)
	if _, err := stray.Spec(0); err == nil || !contains(err.Error(), "mnist-b-0", `"b"`) {
		t.Errorf("a member of a role that the group lacks: error %v", err)
	}
}
