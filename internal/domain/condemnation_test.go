package domain

import (
	"testing"
	"time"
)

func TestCondemnation(t *testing.T) {
	at := time.Date(2026, 11, 2, 3, 4, 5, 0, time.UTC)
	const boot = "2c7d8e5b"
	for name, test := range map[string]struct {
		asked bool
		boot  string
		look  GPU
		holds bool
		asks  bool
	}{
		"nothing happened": {boot: boot, holds: true},
		"it was gone before": {
			boot: boot, look: GPU{GoneAt: at.Add(-time.Second)}, holds: true,
		},
		"it was gone since":           {boot: boot, look: GPU{GoneAt: at.Add(time.Second)}},
		"its host was started again":  {boot: "another"},
		"its host reports no boot ID": {holds: true},
		"the driver begins to ask": {
			boot: boot, look: GPU{RecoveryNeeded: new(true)}, holds: true, asks: true,
		},
		"the driver goes on to ask": {
			boot: boot, asked: true, look: GPU{RecoveryNeeded: new(true)}, holds: true, asks: true,
		},
		"the driver no longer asks": {
			boot: boot, asked: true, look: GPU{RecoveryNeeded: new(false)}, asks: true,
		},
		"the driver has asked, and can't be asked now": {boot: boot, asked: true, holds: true, asks: true},
		"the driver never asked": {
			boot: boot, look: GPU{RecoveryNeeded: new(false)}, holds: true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			next, holds := Condemnation{XID: 48, At: at, Boot: boot, Asked: test.asked}.After(test.look, test.boot)
			if want := (Condemnation{XID: 48, At: at.Local(), Boot: boot, Asked: test.asks}); holds != test.holds ||
				!next.Equal(want) {
				t.Errorf("it is %+v, and holds: %v", next, holds)
			}
		})
	}
	if next, holds := (Condemnation{At: at}).After(GPU{}, boot); !holds || next.Equal(Condemnation{At: at.Add(1)}) {
		t.Errorf("for a host that reported no boot ID it is %+v, and holds: %v", next, holds)
	}
}
