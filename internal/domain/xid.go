package domain

import (
	"fmt"
	"slices"
)

// applicationXIDs are faults of a program, after which the GPU works for the next one. They are the ones that NVIDIA's
// Kubernetes device plugin ignores (https://github.com/NVIDIA/k8s-device-plugin/blob/main/internal/rm/health.go).
var applicationXIDs = []int{13, 31, 43, 45, 68, 109}

// resetXIDs are the errors after which only a reset makes a GPU usable again: of the GPU itself, its driver, or its
// host. They are those whose immediate action is RESET_GPU, RESTART_BM or RESTART_VM in NVIDIA's catalogue, plus 48 and
// 74, of which it says that "a GPU reset or node reboot is needed to clear this error"
// (https://docs.nvidia.com/deploy/xid-errors/analyzing-xid-catalog.html). A change of the recovery action (154) and
// NVLink 5 errors (144 to 150) may or may not need one; the driver then reports that itself, see [GPU.RecoveryNeeded].
var resetXIDs = []int{46, 48, 62, 64, 74, 79, 95, 110, 119, 120, 136, 140, 143, 151, 155, 156, 158}

// xidTexts describes the XIDs that a cluster is likely to see, shortened from
// https://docs.nvidia.com/deploy/xid-errors/analyzing-xid-catalog.html.
var xidTexts = map[int]string{
	13:  "graphics engine exception",
	31:  "page fault in a program",
	32:  "corrupted push buffer",
	38:  "driver firmware error",
	43:  "a program's work was stopped",
	45:  "a program's work was cleaned up",
	46:  "the GPU stopped processing",
	48:  "double-bit ECC error",
	61:  "microcontroller warning",
	62:  "microcontroller halt",
	63:  "page retirement or row remapping",
	64:  "failed page retirement or row remapping",
	68:  "video processor exception",
	69:  "graphics engine class error",
	74:  "NVLink error",
	79:  "fallen off the bus",
	92:  "high rate of single-bit ECC errors",
	94:  "contained ECC error",
	95:  "uncontained ECC error",
	109: "context switch timeout",
	110: "security fault",
	119: "GSP timeout",
	120: "GSP error",
	121: "error on the link to the CPU",
	136: "NVLink training failed",
	140: "unrecovered ECC error",
	143: "initialisation failed",
	151: "key rotation failed",
	154: "recovery needed",
	155: "NVLink down",
	156: "resource retired",
	158: "fatal timeout",
}

// FatalXID reports whether an XID of NVIDIA's driver makes the GPU unusable, as all do except faults of the program
// that used it.
func FatalXID(xid int) bool {
	return !slices.Contains(applicationXIDs, xid)
}

// ResetXID reports whether a GPU has to be reset after this XID. Without a reset it stays unusable, however long ago
// the error was.
func ResetXID(xid int) bool {
	return slices.Contains(resetXIDs, xid)
}

// XIDText returns a short description of an XID, or "driver error" if it is unknown.
func XIDText(xid int) string {
	if text, known := xidTexts[xid]; known {
		return text
	}
	return "driver error"
}

// XIDTrouble describes the XID that makes a GPU unusable, such as "fallen off the bus (XID 79)".
func XIDTrouble(xid int) string {
	return fmt.Sprintf("%s (XID %d)", XIDText(xid), xid)
}
