package autoscale

import "time"

// crew are the members of a simulated role.
type crew struct {
	// count is the number of members ordered.
	count int
	// ready is how many members are at work. starting are the others, in the order in which they were ordered, with the
	// times when they will be ready.
	ready    int
	starting []At[int]
}

// grow marks members that have started as ready, and reports whether there are any.
func (c *crew) grow(now time.Time) (grown bool) {
	for len(c.starting) > 0 && !c.starting[0].At.After(now) {
		c.ready += c.starting[0].Value
		c.starting = c.starting[1:]
		grown = true
	}
	return grown
}

// allReady makes all members ready.
func (c *crew) allReady() { c.ready, c.starting = c.count, nil }

// order sets the count. Added members are ready at the given time; the last ordered are removed first.
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
