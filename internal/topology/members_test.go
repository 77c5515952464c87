package topology

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
)

func TestScalable(t *testing.T) {
	g := group("spark", map[string]int{"submit": 1})
	g.Roles["master"], g.Roles["worker"] = domain.Role{}, domain.Role{}
	for role, want := range map[string]bool{"master": false, "worker": true, "submit": false, "nobody": false} {
		if got := Scalable(g, role); got != want {
			t.Errorf("%s: %v", role, got)
		}
	}
	if !AnyScalable(g) {
		t.Error("none of the roles can be scaled")
	}
	delete(g.Roles, "worker")
	if AnyScalable(g) {
		t.Error("a role can be scaled")
	}
}

// TestAbsent checks that only members without identity leave gaps, and none if the count is declared.
func TestAbsent(t *testing.T) {
	spark := group("spark", map[string]int{"master": 1, "worker": 0})
	unmanaged := edit("worker", func(r *domain.Role) { r.Replicas = nil })
	for name, c := range map[string]struct {
		change func(g *domain.Group)
		count  int
		stored []int
		want   map[string][]int
	}{
		"a gap":                          {unmanaged, 2, []int{1}, map[string][]int{"worker": {1}}},
		"a gap that no member is behind": {unmanaged, 2, []int{1, 3, 7}, map[string][]int{"worker": {1}}},
		"no members":                     {unmanaged, 0, []int{1}, nil},
		"replicas are declared":          {func(*domain.Group) {}, 2, []int{1}, nil},
		"with devices of their own": {func(g *domain.Group) {
			unmanaged(g)
			edit("worker", func(r *domain.Role) { r.GPUs = &domain.GPURequest{Pool: "p"} })(g)
		}, 2, []int{0}, map[string][]int{"worker": {0}}},
		"members that others know": {func(g *domain.Group) {
			unmanaged(g)
			g.Framework = "none"
		}, 2, []int{1}, nil},
		"a role that is gone": {func(g *domain.Group) { delete(g.Roles, "worker") }, 2, []int{1}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			g := spark
			g.Roles = map[string]domain.Role{"master": spark.Roles["master"], "worker": spark.Roles["worker"]}
			c.change(&g)
			if diff := cmp.Diff(c.want, Absent(g, map[string]int{"master": 1, "worker": c.count},
				map[string][]int{"worker": c.stored})); diff != "" {
				t.Errorf("absent (-want +got):\n%s", diff)
			}
		})
	}
}

func TestExpandWithoutAbsentMembers(t *testing.T) {
	g := group("spark", map[string]int{"master": 1, "worker": 2})
	want := []domain.Member{
		{Name: "mnist-master-0", Role: "master"},
		{Name: "mnist-worker-1", Role: "worker", Index: 1},
		{Name: "mnist-worker-3", Role: "worker", Index: 3},
	}
	if diff := cmp.Diff(want, Expand(g, Counts(g, nil), map[string][]int{"worker": {0, 2}})); diff != "" {
		t.Errorf("members (-want +got):\n%s", diff)
	}
}

func TestValidateCounts(t *testing.T) {
	for name, c := range map[string]struct {
		framework string
		counts    map[string]int
		args      string
		want      string
	}{
		"as declared":   {"tensorflow", map[string]int{"ps": 1, "worker": 1}, "", ""},
		"nobody at all": {"none", map[string]int{"worker": 0}, "", ""},
		"more than a framework takes": {
			"tensorflow", map[string]int{"chief": 2, "worker": 1}, "", `framework "tensorflow" takes at most 1`,
		},
		"fewer than a framework needs": {
			"mpi", map[string]int{"launcher": 1, "worker": 0}, "", `needs a role "worker" with at least 1 replica`,
		},
		"more than there can be": {"none", map[string]int{"worker": 10_001}, "", "0 to 10000 are allowed"},
		"a template that all can have": {
			"none", map[string]int{"ps": 2, "worker": 2}, `{{ address "ps" .Index }}`, "",
		},
		"a template that some can have": {
			"none", map[string]int{"ps": 2, "worker": 3}, `{{ address "ps" .Index }}`, `role "ps" has no member 2`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := group(c.framework, c.counts)
			for role := range g.Roles {
				edit(role, func(r *domain.Role) { r.Replicas = nil })(&g)
			}
			if c.args != "" {
				edit("worker", func(r *domain.Role) { r.Args = []string{c.args} })(&g)
			}
			problems := ValidateCounts(g, c.counts, nil)
			if c.want == "" && len(problems) > 0 || c.want != "" && !strings.Contains(problems.Error(), c.want) {
				t.Errorf("the problems are %v, want %q", problems, c.want)
			}
		})
	}
}
