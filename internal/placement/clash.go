package placement

import (
	"fmt"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
)

// clashKind says what a role's ports clash with.
type clashKind int

const (
	withRole clashKind = iota
	withGroup
	withPublisher
	withListener
)

// clash identifies what is reported as one problem: a role that clashes with another role, another group, a published
// port, or anything else that listens.
type clash struct {
	demand *demand
	kind   clashKind
	// party is the name of the other role or group.
	party string
}

// clashes collects the ports that are wanted twice, in the order in which they are found.
type clashes struct {
	order []clash
	found map[clash][]string
}

func (c *clashes) add(key clash, address string, port int, member, other string) {
	if c.found == nil {
		c.found = map[clash][]string{}
	}
	if c.found[key] == nil {
		c.order = append(c.order, key)
	}
	wanted := fmt.Sprintf("%s:%d for %s", address, port, member)
	if other != "" {
		wanted += " and " + other
	}
	c.found[key] = append(c.found[key], wanted)
}

func (c *clashes) problems(group domain.Group) domain.Problems {
	var ps domain.Problems
	for _, key := range c.order {
		d, first := key.demand, *key.demand.spec.Port
		wanted := list(c.found[key], func(s *string) string { return *s })
		switch key.kind {
		case withRole:
			ps.Add(d.path("port"), "Ports overlap",
				"members at the same address count up from their role's port, and roles %q (from %d) and %q (from "+
					"%d) overlap: %s; set the two ports further apart",
				key.party, *group.Roles[key.party].Port, d.role, first, wanted)
		case withGroup:
			ps.Add(d.path("port"), "Port taken by another group",
				"role %q (from port %d) needs ports that group %q has: %s; choose another port, or leave it out to "+
					"get free ones",
				d.role, first, key.party, wanted)
		case withPublisher:
			ps.Add(d.path("port"), "Port published by another member",
				"role %q (from port %d) needs ports that other members publish: %s; choose another port, leave it "+
					"out to get free ones, or publish others in container.ports",
				d.role, first, wanted)
		case withListener:
			ps.Add(d.path("port"), "Port in use",
				"role %q (from port %d) needs ports that something else already listens on: %s; choose another port, "+
					"leave it out to get free ones, or stop what listens there",
				d.role, first, wanted)
		}
	}
	return ps
}
