package domain

import "testing"

func TestXID(t *testing.T) {
	for xid, want := range map[int]struct {
		fatal, reset bool
		text         string
	}{
		13:  {false, false, "graphics engine exception"},
		31:  {false, false, "page fault in a program"},
		43:  {false, false, "a program's work was stopped"},
		45:  {false, false, "a program's work was cleaned up"},
		68:  {false, false, "video processor exception"},
		109: {false, false, "context switch timeout"},
		48:  {true, true, "double-bit ECC error"},
		63:  {true, false, "page retirement or row remapping"},
		64:  {true, true, "failed page retirement or row remapping"},
		74:  {true, true, "NVLink error"},
		79:  {true, true, "fallen off the bus"},
		92:  {true, false, "high rate of single-bit ECC errors"},
		94:  {true, false, "contained ECC error"},
		95:  {true, true, "uncontained ECC error"},
		119: {true, true, "GSP timeout"},
		120: {true, true, "GSP error"},
		62:  {true, true, "microcontroller halt"},
		121: {true, false, "error on the link to the CPU"},
		140: {true, true, "unrecovered ECC error"},
		154: {true, false, "recovery needed"},
		// XIDs that the driver itself can't name, and unassigned numbers.
		999: {true, false, "driver error"},
		0:   {true, false, "driver error"},
	} {
		if got := FatalXID(xid); got != want.fatal {
			t.Errorf("XID %d is fatal: %v, want %v", xid, got, want.fatal)
		}
		if got := ResetXID(xid); got != want.reset {
			t.Errorf("XID %d needs a reset: %v, want %v", xid, got, want.reset)
		}
		if got := XIDText(xid); got != want.text {
			t.Errorf("XID %d is %q, want %q", xid, got, want.text)
		}
	}
}

// TestResetXIDs checks that an XID that needs a reset is not a fault of a program, and has a description.
func TestResetXIDs(t *testing.T) {
	for _, xid := range resetXIDs {
		if !FatalXID(xid) || XIDText(xid) == XIDText(0) {
			t.Errorf("XID %d is fatal: %v, and means %q", xid, FatalXID(xid), XIDText(xid))
		}
	}
	if got := XIDTrouble(79); got != "fallen off the bus (XID 79)" {
		t.Errorf("XID 79 is the trouble %q", got)
	}
}
