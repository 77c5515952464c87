package domain

import "time"

// Condemnation is a driver error that makes a GPU unusable until it is reset, see [ResetXID].
type Condemnation struct {
	XID int       `json:"xid"`
	At  time.Time `json:"at"`
	// Boot is the boot ID of the host at that time; empty if the host does not report one.
	Boot string `json:"boot,omitempty"`
	// Asked reports whether the driver itself has asked for a recovery since.
	Asked bool `json:"asked,omitempty"`
}

// Equal reports whether two condemnations are the same.
func (c Condemnation) Equal(other Condemnation) bool {
	at := c.At
	c.At = other.At
	return c == other && at.Equal(other.At)
}

// After returns the condemnation updated with the current state of the GPU and the host's boot ID. holds is false if
// the GPU has been reset: the host was rebooted, the GPU or its driver has been gone since, or the driver asked for a
// recovery and no longer does.
func (c Condemnation) After(look GPU, boot string) (next Condemnation, holds bool) {
	rebooted := c.Boot != "" && boot != "" && c.Boot != boot
	asks := look.RecoveryNeeded
	recovered := c.Asked && asks != nil && !*asks
	c.Asked = c.Asked || asks != nil && *asks
	return c, !rebooted && !recovered && !look.GoneAt.After(c.At)
}
