package main

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestNext(t *testing.T) {
	a, b := partition{"a", 0}, partition{"b", 0}
	at := func(replicas ...int32) held { return held{replicas: replicas, inSync: replicas, leader: replicas[0]} }
	ledBy := func(leader int32, h held, inSync ...int32) held {
		return held{h.replicas, h.adding, h.removing, inSync, leader}
	}
	moving := held{replicas: []int32{0, 2}, adding: []int32{2}, removing: []int32{1}, inSync: []int32{0, 1}, leader: 0}
	all := map[int32]bool{0: true, 1: true, 2: true}
	without2 := map[int32]bool{0: true, 1: true, 2: false}
	for name, test := range map[string]struct {
		brokers map[int32]bool
		held    map[partition]held
		want    map[partition][]int32
		next    step
	}{
		"nothing": {all, nil, nil, step{done: true}},
		"all in place": {
			all, map[partition]held{a: at(0, 1)}, map[partition][]int32{a: {0, 1}}, step{done: true},
		},
		"the first that is away": {
			all, map[partition]held{a: at(0, 1), b: at(0, 1)}, map[partition][]int32{a: {0, 1}, b: {1, 2}},
			step{away: 1, move: &move{b, []int32{0, 1}, []int32{1, 2}}},
		},
		"one at a time": {
			all, map[partition]held{a: moving, b: at(0, 1)}, map[partition][]int32{a: {0, 2}, b: {1, 2}}, step{away: 2},
		},
		"one that leads elsewhere": {
			all, map[partition]held{a: at(0), b: moving}, map[partition][]int32{a: {1}, b: {0, 1}},
			step{away: 2, move: &move{b, []int32{0, 2, 1}, []int32{0, 1}}},
		},
		"another order is a move": {
			all, map[partition]held{a: at(0, 1)}, map[partition][]int32{a: {1, 0}},
			step{away: 1, move: &move{a, []int32{0, 1}, []int32{1, 0}}},
		},
		"not to one that is down": {
			without2, map[partition]held{a: at(0), b: at(1)}, map[partition][]int32{a: {2}, b: {0}},
			step{away: 2, move: &move{b, []int32{1}, []int32{0}}},
		},
		"none but to one that is down": {
			without2, map[partition]held{a: at(0)}, map[partition][]int32{a: {2}}, step{away: 1},
		},
		"led by another": {
			all, map[partition]held{a: ledBy(1, at(0, 1), 0, 1)}, map[partition][]int32{a: {0, 1}},
			step{elect: []partition{a}},
		},
		"led by another until it is there": {
			all, map[partition]held{a: ledBy(1, at(0, 1), 1)}, map[partition][]int32{a: {0, 1}}, step{},
		},
		"led by another, as it is down": {
			without2, map[partition]held{a: ledBy(1, at(2, 1), 1)}, map[partition][]int32{a: {2, 1}}, step{done: true},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := next(state{test.brokers, test.held, nil}, test.want)
			if diff := cmp.Diff(test.next, got, cmp.AllowUnexported(step{}, move{}, partition{})); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestPlan(t *testing.T) {
	p := partition{"a", 0}
	on := func(replicas ...int32) map[partition]held { return map[partition]held{p: {replicas: replicas}} }
	for name, test := range map[string]struct {
		plan           plan
		state          state
		brokers, gones []int32
	}{
		"no hook was called": {
			plan{}, state{map[int32]bool{0: true, 1: true}, on(0), nil}, []int32{0, 1}, nil,
		},
		"one is down, and has something": {
			plan{}, state{map[int32]bool{0: true, 1: false}, on(1), nil}, []int32{0, 1}, nil,
		},
		"one is down, and has nothing": {plan{}, state{map[int32]bool{0: true, 1: false}, on(0), nil}, []int32{0}, nil},
		"one of the group's is down": {
			plan{}.joined(2), state{map[int32]bool{0: true, 1: false}, on(0), nil}, []int32{0, 1}, nil,
		},
		"one went without a word": {
			plan{}.joined(2), state{map[int32]bool{0: true, 1: true, 2: false}, on(2), nil}, []int32{0, 1}, nil,
		},
		"one went long ago": {
			plan{}.joined(2), state{map[int32]bool{0: true, 1: true, 2: false}, on(1), nil}, []int32{0, 1}, []int32{2},
		},
		"one is leaving": {
			plan{}.left(3, []int32{2}), state{map[int32]bool{0: true, 1: true, 2: true}, on(0), nil}, []int32{0, 1},
			nil,
		},
		"one has left": {
			plan{}.left(3, []int32{2}), state{map[int32]bool{0: true, 1: true, 2: false}, on(0), nil}, []int32{0, 1},
			[]int32{2},
		},
		"one went down before it was empty": {
			plan{}.left(3, []int32{2}), state{map[int32]bool{0: true, 1: true, 2: false}, on(2), nil}, []int32{0, 1},
			nil,
		},
		"one is to stay after all": {
			plan{}.left(3, []int32{2}).stayed([]int32{2}), state{map[int32]bool{0: true, 1: true, 2: true}, on(0), nil},
			[]int32{0, 1, 2}, nil,
		},
		"one is there again": {
			plan{}.left(3, []int32{1, 2}).joined(2), state{map[int32]bool{0: true, 1: true, 2: true}, on(0), nil},
			[]int32{0, 1}, nil,
		},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.brokers, test.plan.brokers(test.state)); diff != "" {
				t.Errorf("those that stay (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(test.gones, test.plan.gone(test.state)); diff != "" {
				t.Errorf("those that are gone (-want +got):\n%s", diff)
			}
		})
	}
}

func TestStatus(t *testing.T) {
	s := state{brokers: map[int32]bool{0: true, 1: true, 2: true, 3: false}, partitions: map[partition]held{
		{"a", 0}: {replicas: []int32{0, 1}, inSync: []int32{0, 1}},
		{"a", 1}: {replicas: []int32{0, 3}, inSync: []int32{0}},
		{"a", 2}: {replicas: []int32{0, 1}, inSync: []int32{0, 2}, adding: []int32{1}, removing: []int32{2}},
	}}
	want := status{Brokers: 3, ReplicationFactor: 2, Reassigning: 1, Skew: 2.0 / 2, UnderReplicated: 1, MovedBytes: 7}
	if got := statusOf(s, 7); got != want {
		t.Errorf("it is %+v, want %+v", got, want)
	}
	if got := statusOf(state{}, 0); got != (status{}) {
		t.Errorf("of nothing, it is %+v", got)
	}
}
