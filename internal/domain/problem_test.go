package domain

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestPath(t *testing.T) {
	for want, path := range map[string]Path{
		"":                          {},
		"name":                      {"name"},
		`roles["worker"].port`:      {"roles", Key("worker"), "port"},
		`roles["worker"].args[2]`:   {"roles", Key("worker"), "args", 2},
		`env["A \"B\""]`:            {"env", Key(`A "B"`)},
		`hosts["a"].capacity.cpus`:  Path{"hosts", Key("a")}.At("capacity", "cpus"),
		`roles["ps"].mounts[0].src`: Path{"roles"}.At(Key("ps")).At("mounts", 0, "src"),
	} {
		if got := path.String(); got != want {
			t.Errorf("%#v is written %s, not %s", path, got, want)
		}
	}
}

func TestPathAtLeavesItsReceiverAlone(t *testing.T) {
	role := make(Path, 0, 8)
	role = append(role, "roles", Key("ps"))
	port, env := role.At("port"), role.At("env")
	if role.String() != `roles["ps"]` || port.String() != `roles["ps"].port` || env.String() != `roles["ps"].env` {
		t.Errorf("paths share their steps: %s, %s and %s", role, port, env)
	}
}

func TestProblems(t *testing.T) {
	var ps Problems
	if err := ps.Err(); err != nil {
		t.Errorf("no problems are the error %v", err)
	}
	ps.Warn(Path{"image"}, "Not used", "image %q has no effect", "x")
	if err := ps.Err(); err != nil {
		t.Errorf("a warning is the error %v", err)
	}
	ps.Add(Path{"roles", Key("ps"), "port"}, "Invalid port", "%d is no port", 0)
	ps.Add(nil, "No members", "100%% of them are missing")
	want := "roles[\"ps\"].port: Invalid port: 0 is no port\nNo members: 100% of them are missing"
	if err := ps.Err(); err == nil || err.Error() != want {
		t.Errorf("the error is %v, not %s", err, want)
	}
	if diff := cmp.Diff(Problem{
		Path: Path{"image"}, Summary: "Not used", Detail: `image "x" has no effect`, Warning: true,
	},
		ps[0]); diff != "" {
		t.Errorf("warning (-want +got):\n%s", diff)
	}
}

// TestCertain checks that a problem is certain if everything that decides about it is known: the attribute at fault,
// everything above and below it, and all of its inputs.
func TestCertain(t *testing.T) {
	ps := Key("ps")
	for name, test := range map[string]struct {
		problem Problem
		unknown []Path
		certain bool
	}{
		"all is known":      {problem: Problem{Path: Path{"image"}}, certain: true},
		"another attribute": {problem: Problem{Path: Path{"wait_for"}}, unknown: []Path{{"image"}}, certain: true},
		"at":                {problem: Problem{Path: Path{"image"}}, unknown: []Path{{"wait_for"}, {"image"}}},
		"above":             {problem: Problem{Path: Path{"roles", ps, "port"}}, unknown: []Path{{"roles"}}},
		"below":             {problem: Problem{Path: Path{"completion"}}, unknown: []Path{{"completion", "when"}}},
		"a neighbour": {
			problem: Problem{Path: Path{"roles", ps, "port"}}, unknown: []Path{{"roles", ps, "replicas"}},
			certain: true,
		},
		"in an element": {
			problem: Problem{Path: Path{"roles", ps}}, unknown: []Path{{"roles", ps, "image"}}, certain: true,
		},
		"in an item":           {problem: Problem{Path: Path{"rates", 0}}, unknown: []Path{{"rates", 0, "count"}}},
		"an element":           {problem: Problem{Path: Path{"roles", ps}}, unknown: []Path{{"roles", ps}}},
		"anything for no path": {problem: Problem{}, unknown: []Path{{"image"}}},
		"an input": {
			problem: Problem{Path: Path{"source"}, Inputs: []Path{{"source"}, {"type"}}}, unknown: []Path{{"type"}},
		},
		"no input": {
			problem: Problem{Path: Path{"roles"}, Inputs: []Path{{"framework"}}},
			unknown: []Path{{"roles", ps, "image"}}, certain: true,
		},
		"an input of no member": {
			problem: Problem{Path: Path{"source"}, Inputs: []Path{{"roles", ps, "replicas"}}},
			unknown: []Path{{"roles", ps}},
		},
	} {
		if certain := len(Problems{test.problem}.Certain(test.unknown)) == 1; certain != test.certain {
			t.Errorf("%s: the problem is certain: %t", name, certain)
		}
	}
}

func TestDistinct(t *testing.T) {
	var ps Problems
	ps.Add(Path{"a"}, "One", "said")
	ps.Add(Path{"b"}, "One", "said")
	ps.Warn(Path{"a"}, "One", "said")
	ps.Add(Path{"a"}, "One", "said otherwise")
	want := Problems{ps[0], ps[1], ps[3]}
	if diff := cmp.Diff(want, ps.Distinct()); diff != "" {
		t.Errorf("distinct problems (-want +got):\n%s", diff)
	}
}
