package topology

import (
	"testing"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
)

func TestBounds(t *testing.T) {
	for name, test := range map[string]struct {
		framework, role string
		replicas        map[string]int
		least, most     int
	}{
		"of one's own":                    {"none", "worker", nil, 0, 0},
		"of nobody's":                     {"caffe", "worker", nil, 0, 0},
		"workers of Spark":                {"spark", "worker", map[string]int{"master": 1}, 0, 0},
		"the master of Spark":             {"spark", "master", map[string]int{"worker": 3}, 1, 1},
		"workers of MPI":                  {"mpi", "worker", map[string]int{"launcher": 1}, 1, 0},
		"workers of JAX":                  {"jax", "worker", nil, 1, 0},
		"workers with a master":           {"pytorch", "worker", map[string]int{"master": 1}, 0, 0},
		"workers with none":               {"pytorch", "worker", nil, 1, 0},
		"workers with a master of nobody": {"pytorch", "worker", map[string]int{"master": 0}, 1, 0},
		"workers with an evaluator":       {"tensorflow", "worker", map[string]int{"evaluator": 1}, 1, 0},
		"parameter servers":               {"tensorflow", "ps", map[string]int{"worker": 1}, 0, 0},
	} {
		g := domain.Group{Framework: test.framework, Roles: map[string]domain.Role{test.role: {}}}
		for role, n := range test.replicas {
			g.Roles[role] = domain.Role{Replicas: &n}
		}
		if least, most := Bounds(g, test.role); least != test.least || most != test.most {
			t.Errorf("%s: %d to %d, want %d to %d", name, least, most, test.least, test.most)
		}
	}
}
