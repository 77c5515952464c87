package main

import (
	"slices"
	"sync"
)

// stream is what one producer sends to one partition: records numbered 0, 1, 2, ….
type stream struct {
	producer  uint32
	partition int32
}

// span is the range of numbers [begin, end).
type span struct{ begin, end uint64 }

// ledger accounts for each record.
type ledger struct {
	mu      sync.Mutex
	streams map[stream]*entries
	tally
}

// tally counts records.
type tally struct {
	// Produced records were handed to Kafka. Kafka Acknowledged them, or they are Errors: it answered anything else, or
	// the client gave up.
	Produced     uint64 `json:"produced"`
	Acknowledged uint64 `json:"acknowledged"`
	Errors       uint64 `json:"errors"`
	// Consumed records were read, each counted once. OutOfOrder ones were read after a larger number of the same
	// producer and partition; Duplicated ones had been read before.
	Consumed   uint64 `json:"consumed"`
	Duplicated uint64 `json:"duplicated"`
	OutOfOrder uint64 `json:"out_of_order"`
}

// entries account for the records of a stream.
type entries struct {
	// issued is how many were produced, next is one more than the largest number read.
	issued, next uint64
	// missing are numbers that reading has skipped.
	missing []span
	// failed were not acknowledged, so Kafka may or may not have them.
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

// produce issues the number of a stream's next record.
func (l *ledger) produce(s stream) uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	e := l.of(s)
	l.Produced++
	e.issued++
	return e.issued - 1
}

// acknowledge records that Kafka acknowledged a record, or that it failed.
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

// consume records that a record was read.
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

// find removes a number from those missing, and reports whether it was one of them.
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

// lost returns how many acknowledged records were not read. All must have been acknowledged or have failed.
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

// counts returns the tally and the lag, which is the number of acknowledged records not read yet.
func (l *ledger) counts() (tally, uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.tally, l.Acknowledged - min(l.Acknowledged, l.Consumed)
}
