package main

import (
	"slices"
	"sync"
)

// stream is what one producer sends to one partition: records with the numbers 0, 1, 2, ….
type stream struct {
	producer  uint32
	partition int32
}

// span is the numbers from begin to before end.
type span struct{ begin, end uint64 }

// ledger tells what became of each record.
type ledger struct {
	mu      sync.Mutex
	streams map[stream]*entries
	tally
}

// tally counts records.
type tally struct {
	// Produced are those that were handed to Kafka, Acknowledged those that it said it has, and Errors those of which
	// it said, or the client gave up on hearing, anything else.
	Produced     uint64 `json:"produced"`
	Acknowledged uint64 `json:"acknowledged"`
	Errors       uint64 `json:"errors"`
	// Consumed are those that were read, each once. Of those that were read, OutOfOrder came after one with a larger
	// number of the same producer and partition, and Duplicated were read before.
	Consumed   uint64 `json:"consumed"`
	Duplicated uint64 `json:"duplicated"`
	OutOfOrder uint64 `json:"out_of_order"`
}

// entries is what became of the records of a stream.
type entries struct {
	// issued are as many as were produced, and next is one more than the largest that was read.
	issued, next uint64
	// missing were skipped by what was read.
	missing []span
	// failed were not acknowledged: they may be there, or not.
	failed map[uint64]bool
}

func newLedger() *ledger { return &ledger{streams: map[stream]*entries{}} }

// of returns the entries of a stream. The caller holds the lock.
func (l *ledger) of(s stream) *entries {
	e := l.streams[s]
	if e == nil {
		e = &entries{failed: map[uint64]bool{}}
		l.streams[s] = e
	}
	return e
}

// produce returns the number of a stream's next record.
func (l *ledger) produce(s stream) uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	e := l.of(s)
	l.Produced++
	e.issued++
	return e.issued - 1
}

// acknowledge notes that Kafka has a record, or that it failed.
func (l *ledger) acknowledge(s stream, number uint64, failed bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if failed {
		l.Errors++
		l.of(s).failed[number] = true
		return
	}
	l.Acknowledged++
}

// consume notes that a record was read.
func (l *ledger) consume(s stream, number uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	e := l.of(s)
	switch {
	case number >= e.next:
		if number > e.next {
			e.missing = append(e.missing, span{e.next, number})
		}
		e.next = number + 1
		l.Consumed++
	case e.find(number):
		l.Consumed++
		l.OutOfOrder++
	default:
		l.Duplicated++
	}
}

// find takes a number out of those that are missing, and reports whether it was.
func (e *entries) find(number uint64) bool {
	for i, s := range e.missing {
		if number < s.begin || number >= s.end {
			continue
		}
		var rest []span
		for _, part := range []span{{s.begin, number}, {number + 1, s.end}} {
			if part.begin < part.end {
				rest = append(rest, part)
			}
		}
		e.missing = slices.Replace(e.missing, i, i+1, rest...)
		return true
	}
	return false
}

// lost returns how many records were acknowledged, and not read. All must have been acknowledged or have failed.
func (l *ledger) lost() (lost uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, e := range l.streams {
		unread := e.missing
		if e.next < e.issued {
			unread = append(slices.Clone(unread), span{e.next, e.issued})
		}
		for _, s := range unread {
			lost += s.end - s.begin
			for number := range e.failed {
				if number >= s.begin && number < s.end {
					lost--
				}
			}
		}
	}
	return lost
}

// counts returns the tally, and the lag: how many records were acknowledged, and not read yet.
func (l *ledger) counts() (tally, uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.tally, l.Acknowledged - min(l.Acknowledged, l.Consumed)
}
