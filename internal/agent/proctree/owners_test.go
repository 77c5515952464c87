//go:build linux

package proctree

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestByInstance(t *testing.T) {
	process := func(pid, parent, session int, named string) entry {
		return entry{named: named, Process: Process{PID: pid, Parent: parent, Session: session, StartTime: uint64(pid)}}
	}
	for name, test := range map[string]struct {
		table []entry
		want  map[string][]int
	}{
		"named by the environment": {
			table: []entry{process(10, 1, 10, "a"), process(20, 1, 20, "b"), process(30, 1, 30, "")},
			want:  map[string][]int{"a": {10}, "b": {20}},
		},
		"the environment wins over session and parent": {
			table: []entry{process(10, 1, 10, "a"), process(11, 10, 10, "b")},
			want:  map[string][]int{"a": {10}, "b": {11}},
		},
		"a cleared environment: the parent's, over generations": {
			table: []entry{process(10, 1, 10, "a"), process(11, 10, 11, ""), process(12, 11, 12, "")},
			want:  map[string][]int{"a": {10, 11, 12}},
		},
		"an orphan with a cleared environment: the session's leader": {
			table: []entry{process(10, 1, 10, "a"), process(11, 1, 10, "")},
			want:  map[string][]int{"a": {10, 11}},
		},
		"an orphan of a leader that cleared its own environment": {
			table: []entry{process(10, 1, 10, "a"), process(20, 10, 20, ""), process(21, 1, 20, "")},
			want:  map[string][]int{"a": {10, 20, 21}},
		},
		"an orphan whose leader is gone: what others of the session name": {
			table: []entry{process(11, 1, 10, "a"), process(12, 1, 10, "")},
			want:  map[string][]int{"a": {11, 12}},
		},
		"a session without leader that names two instances is nobody's": {
			table: []entry{
				process(11, 1, 10, "a"), process(12, 1, 10, "b"), process(13, 1, 10, ""), process(14, 1, 10, "a"),
			},
			want: map[string][]int{"a": {11, 14}, "b": {12}},
		},
		"the session of a leader outside is not drawn in": {
			table: []entry{process(10, 1, 10, ""), process(11, 10, 10, "a"), process(12, 10, 10, "")},
			want:  map[string][]int{"a": {11}},
		},
		"an orphan collected by a process of another instance stays with its session": {
			table: []entry{process(10, 1, 10, "outer"), process(21, 10, 20, "inner"), process(22, 10, 20, "")},
			want:  map[string][]int{"outer": {10}, "inner": {21, 22}},
		},
		"a parent younger than its child is another process": {
			table: []entry{process(30, 1, 30, "a"), process(12, 30, 12, "")},
			want:  map[string][]int{"a": {30}},
		},
		"session 0 binds nobody": {
			table: []entry{process(11, 1, 0, "a"), process(12, 2, 0, "")},
			want:  map[string][]int{"a": {11}},
		},
		"a cycle ends": {
			table: []entry{
				{Process: Process{PID: 11, Parent: 12, Session: 11}},
				{Process: Process{PID: 12, Parent: 11, Session: 12}},
			},
			want: map[string][]int{},
		},
	} {
		t.Run(name, func(t *testing.T) {
			table := map[int]entry{}
			for _, e := range test.table {
				table[e.PID] = e
			}
			got := map[string][]int{}
			for id, processes := range byInstance(table) {
				for _, p := range processes {
					got[id] = append(got[id], p.PID)
				}
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("processes by instance (-want +got):\n%s", diff)
			}
		})
	}
}
