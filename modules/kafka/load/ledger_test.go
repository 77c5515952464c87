package main

import (
	"testing"

	"pgregory.net/rapid"
)

func TestLedger(t *testing.T) {
	for name, test := range map[string]struct {
		issued uint64
		failed []uint64
		read   []uint64
		want   tally
		lost   uint64
	}{
		"nothing": {want: tally{}},
		"all": {
			issued: 3, read: []uint64{0, 1, 2}, want: tally{Produced: 3, Acknowledged: 3, Consumed: 3},
		},
		"the last is lost": {
			issued: 3, read: []uint64{0, 1}, want: tally{Produced: 3, Acknowledged: 3, Consumed: 2}, lost: 1,
		},
		"all are lost": {issued: 3, want: tally{Produced: 3, Acknowledged: 3}, lost: 3},
		"some in the middle are lost": {
			issued: 5, read: []uint64{0, 4}, want: tally{Produced: 5, Acknowledged: 5, Consumed: 2}, lost: 3,
		},
		"one that failed isn't there": {
			issued: 3, failed: []uint64{1}, read: []uint64{0, 2},
			want: tally{Produced: 3, Acknowledged: 2, Errors: 1, Consumed: 2},
		},
		"one that failed is there": {
			issued: 3, failed: []uint64{1}, read: []uint64{0, 1, 2},
			want: tally{Produced: 3, Acknowledged: 2, Errors: 1, Consumed: 3},
		},
		"the last one failed": {
			issued: 2, failed: []uint64{1}, read: []uint64{0},
			want: tally{Produced: 2, Acknowledged: 1, Errors: 1, Consumed: 1},
		},
		"one is there twice": {
			issued: 3, read: []uint64{0, 1, 1, 2},
			want: tally{Produced: 3, Acknowledged: 3, Consumed: 3, Duplicated: 1},
		},
		"a part is there twice": {
			issued: 3, read: []uint64{0, 1, 2, 0, 1, 2},
			want: tally{Produced: 3, Acknowledged: 3, Consumed: 3, Duplicated: 3},
		},
		"two are the wrong way round": {
			issued: 3, read: []uint64{1, 0, 2}, want: tally{Produced: 3, Acknowledged: 3, Consumed: 3, OutOfOrder: 1},
		},
		"a part comes late, one is twice": {
			issued: 5, read: []uint64{0, 4, 2, 2, 3},
			want: tally{Produced: 5, Acknowledged: 5, Consumed: 4, OutOfOrder: 2, Duplicated: 1}, lost: 1,
		},
	} {
		t.Run(name, func(t *testing.T) {
			l, s := newLedger(), stream{1, 2}
			failed := map[uint64]bool{}
			for _, number := range test.failed {
				failed[number] = true
			}
			for want := range test.issued {
				number := l.produce(s)
				if number != want {
					t.Errorf("record %d is numbered %d", want, number)
				}
				l.acknowledge(s, number, failed[number])
			}
			for _, number := range test.read {
				l.consume(s, number)
			}
			counts, lag := l.counts()
			if counts != test.want || l.lost() != test.lost ||
				lag != counts.Acknowledged-min(counts.Acknowledged, counts.Consumed) {
				t.Errorf("it is %+v, %d lost, lag %d; want %+v, %d", counts, l.lost(), lag, test.want, test.lost)
			}
		})
	}
}

// TestLedgerProperty: whatever the order of reading, exactly the acknowledged records that were not read count as lost.
func TestLedgerProperty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l, s := newLedger(), stream{}
		issued := rapid.IntRange(0, 30).Draw(t, "issued")
		for range issued {
			l.acknowledge(s, l.produce(s), false)
		}
		read := map[int]bool{}
		if issued > 0 {
			for _, number := range rapid.SliceOf(rapid.IntRange(0, issued-1)).Draw(t, "read") {
				l.consume(s, uint64(number))
				read[number] = true
			}
		}
		counts, _ := l.counts()
		if lost := l.lost(); lost != uint64(issued-len(read)) || counts.Consumed != uint64(len(read)) {
			t.Fatalf("%d are lost, %+v", lost, counts)
		}
	})
}
