package autoscale

import "time"

// crew are the members of a simulated role.
type crew struct {
	// count is the number that were ordered.
	count int
	// ready members are at work; the others, in the order in which they were ordered, will be from then on.
	ready    int
	starting []At[int]
}

// grow has members be ready that have started, and reports whether there are any.
func (c *crew) grow(now time.Time) (grown bool) {
	for len(c.starting) > 0 && !c.starting[0].At.After(now) {
		c.ready += c.starting[0].Value
		c.starting = c.starting[1:]
		grown = true
	}
	return grown
}

// allReady has all members be ready.
func (c *crew) allReady() { c.ready, c.starting = c.count, nil }

// order sets the count: further members are ready at a time, and of those that are removed the ones go first that were
// ordered last.
func (c *crew) order(count int, ready time.Time) {
	change := count - c.count
	c.count = count
	if change > 0 {
		c.starting = append(c.starting, At[int]{ready, change})
		return
	}
	for left := -change; left > 0; {
		newest := len(c.starting) - 1
		if newest < 0 {
			c.ready -= left
			return
		}
		taken := min(left, c.starting[newest].Value)
		c.starting[newest].Value -= taken
		left -= taken
		if c.starting[newest].Value == 0 {
			c.starting = c.starting[:newest]
		}
	}
}
