package domain

import "time"

// Condemnation is an error of the driver that condemns a GPU until it is reset, see [ResetXID].
type Condemnation struct {
	XID int       `json:"xid"`
	At  time.Time `json:"at"`
	// Boot is the ID of the start of its host during which that was; empty where the host does not tell.
	Boot string `json:"boot,omitempty"`
	// Asked tells that the driver itself has asked for a recovery since.
	Asked bool `json:"asked,omitempty"`
}

// Equal reports whether two condemnations are the same.
func (c Condemnation) Equal(other Condemnation) bool {
	at := c.At
	c.At = other.At
	return c == other && at.Equal(other.At)
}

// After returns the condemnation after a look at the GPU, during a start of its host, and false where the look shows
// that the GPU has been reset: the host was started again, the GPU or its driver was gone since, or the driver has
// asked for a recovery and no longer does.
func (c Condemnation) After(look GPU, boot string) (next Condemnation, holds bool) {
	rebooted := c.Boot != "" && boot != "" && c.Boot != boot
	asks := look.RecoveryNeeded
	recovered := c.Asked && asks != nil && !*asks
	c.Asked = c.Asked || asks != nil && *asks
	return c, !rebooted && !recovered && !look.GoneAt.After(c.At)
}
