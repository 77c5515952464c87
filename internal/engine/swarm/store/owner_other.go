//go:build !linux

package store

// identify leaves the machine unknown: that its process has died shows by a lock that is not renewed.
func (o *Owner) identify() {}

// ended is not asked of a process of an unknown machine.
func (o Owner) ended() bool { return false }
