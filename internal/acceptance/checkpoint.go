//go:build linux

package acceptance

import (
	"encoding/json"
	"testing"
)

// Checkpoint is a line in the log of the example "checkpoint".
type Checkpoint struct {
	// Event is "began" or "resumed" at a start, "saved" after each epoch, and "trained" at the end.
	Event    string  `json:"event"`
	Epoch    int     `json:"epoch"`
	Accuracy float64 `json:"accuracy"`
	// Checksum is the checksum of the weights.
	Checksum int64 `json:"checksum"`
}

// Resumed reports whether a training has been started this many times and has since reached an epoch. The test fails if
// a start did not continue from the last checkpoint, or if the weights differ from those of an uninterrupted training.
func Resumed(t testing.TB, lines []string, starts, epoch int, whole Checkpoint) bool {
	t.Helper()
	done, started := 0, 0
	for _, line := range lines {
		var entry Checkpoint
		if json.Unmarshal([]byte(line), &entry) != nil {
			continue // a warning from a library
		}
		switch entry.Event {
		case "began", "resumed":
			started++
			// One that dies after saving but before logging is an epoch ahead of its log.
			if (entry.Event == "began") != (started == 1) || entry.Epoch != done && entry.Epoch != done+1 {
				t.Fatalf("start %d: %s at epoch %d, want that of the checkpoint, %d", started, entry.Event, entry.Epoch,
					done)
			}
			done = entry.Epoch
		case "saved":
			if done++; entry.Epoch != done {
				t.Fatalf("epoch %d follows epoch %d", entry.Epoch, done-1)
			}
			if entry.Epoch == whole.Epoch && entry.Checksum != whole.Checksum {
				t.Fatalf("epoch %d, after %d starts: checksum %d, want %d", entry.Epoch, started, entry.Checksum,
					whole.Checksum)
			}
		}
	}
	return started == starts && done >= epoch
}
