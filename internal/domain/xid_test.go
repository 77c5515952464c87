package domain

import "testing"

func TestXID(t *testing.T) {
	for xid, want := range map[int]struct {
		fatal bool
		text  string
	}{
		13:  {false, "exception of the graphics engine"},
		31:  {false, "page fault of a program"},
		43:  {false, "a program's work was stopped"},
		45:  {false, "a program's work was cleaned up"},
		68:  {false, "exception of the video processor"},
		109: {false, "context switch timeout"},
		48:  {true, "double-bit ECC error"},
		63:  {true, "page retirement or row remapping"},
		64:  {true, "failed page retirement or row remapping"},
		74:  {true, "NVLink error"},
		79:  {true, "fallen off the bus"},
		92:  {true, "high rate of single-bit ECC errors"},
		94:  {true, "contained ECC error"},
		95:  {true, "uncontained ECC error"},
		119: {true, "timeout of the GSP"},
		120: {true, "error of the GSP"},
		// What the driver itself can't name, and numbers that are not given yet.
		999: {true, "driver error"},
		0:   {true, "driver error"},
	} {
		if got := FatalXID(xid); got != want.fatal {
			t.Errorf("XID %d is fatal: %v, want %v", xid, got, want.fatal)
		}
		if got := XIDText(xid); got != want.text {
			t.Errorf("XID %d is %q, want %q", xid, got, want.text)
		}
	}
}
