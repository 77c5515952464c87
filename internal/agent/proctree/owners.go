//go:build linux

package proctree

// entry is a live process and the instance named by its environment, if any.
type entry struct {
	Process

	named string
}

// owners finds the instance that each process of a table belongs to.
type owners struct {
	table map[int]entry
	// orphaned maps sessions without a leader to their instances.
	orphaned map[int]string
	known    map[int]string
}

func newOwners(table map[int]entry) *owners {
	o := &owners{table: table, orphaned: map[int]string{}, known: make(map[int]string, len(table))}
	for _, e := range table {
		if _, led := table[e.Session]; led || e.named == "" {
			continue
		}
		// A session whose processes name several instances was not started for one of them.
		if other, seen := o.orphaned[e.Session]; seen && other != e.named {
			o.orphaned[e.Session] = ""
		} else {
			o.orphaned[e.Session] = e.named
		}
	}
	return o
}

// of returns the instance of a process, or an empty string.
func (o *owners) of(pid int) string {
	if id, ok := o.known[pid]; ok {
		return id
	}
	o.known[pid] = "" // breaks a cycle, which a table that changed while it was read can have
	o.known[pid] = o.find(o.table[pid])
	return o.known[pid]
}

// find checks the environment, then the session, then the parent. The session comes before the parent because an orphan
// is reparented, possibly to a process of another instance.
func (o *owners) find(e entry) string {
	if e.named != "" {
		return e.named
	}
	// Session 0 is for kernel threads, and for sessions whose leader is outside this PID namespace.
	if e.Session != 0 && e.Session != e.PID {
		id := o.orphaned[e.Session]
		if leader, ok := o.table[e.Session]; ok {
			id = o.of(leader.PID)
		}
		if id != "" {
			return id
		}
	}
	// A parent younger than its child has reused the ID of the real one.
	if parent, ok := o.table[e.Parent]; ok && parent.StartTime <= e.StartTime {
		return o.of(parent.PID)
	}
	return ""
}
