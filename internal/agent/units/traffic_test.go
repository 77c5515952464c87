//go:build linux

package units

import (
	"math"
	"testing"
)

// TestTraffic uses values of hosts with cgroup v2 and of others. The conformance suite checks that systemd counts
// socket traffic, on machines with a cgroup v2 hierarchy.
func TestTraffic(t *testing.T) {
	none := uint64(math.MaxUint64)
	for name, c := range map[string]struct {
		received, sent any
		want           Traffic
		known          bool
	}{
		"counted":                       {uint64(205), uint64(216), Traffic{Received: 205, Sent: 216}, true},
		"nothing yet":                   {uint64(0), uint64(0), Traffic{}, true},
		"most that there can be":        {none - 1, uint64(1), Traffic{Received: none - 1, Sent: 1}, true},
		"version 1 of control groups":   {none, none, Traffic{}, false},
		"one way alone":                 {uint64(205), none, Traffic{}, false},
		"the other way alone":           {none, uint64(216), Traffic{}, false},
		"a systemd without the counter": {nil, nil, Traffic{}, false},
		"another type":                  {"205", int64(216), Traffic{}, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got, known := trafficOf(c.received, c.sent); got != c.want || known != c.known {
				t.Errorf("%+v, %v", got, known)
			}
		})
	}
}
