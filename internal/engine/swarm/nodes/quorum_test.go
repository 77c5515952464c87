package nodes

import "testing"

func TestQuorum(t *testing.T) {
	for managers, want := range map[int]struct {
		needed, spare int
	}{1: {1, 0}, 2: {2, 0}, 3: {2, 1}, 4: {3, 1}, 5: {3, 2}} {
		q := quorum{managers: managers, reachable: want.needed}
		if q.needed() != want.needed || q.spare() != want.spare || q.lost() {
			t.Errorf("of %d managers %d are needed and %d may fail", managers, q.needed(), q.spare())
		}
		if q.reachable--; !q.lost() {
			t.Errorf("of %d managers %d are enough", managers, q.reachable)
		}
	}
}
