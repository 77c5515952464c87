package autoscale

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"
)

// KeepBytes is how much is stored of the history of all policies of a cluster.
const KeepBytes = 8_000_000

// closedEntries is how many entries of each policy, the mean of them, a chunk has before it is closed: what goes on
// begins anew in the next one.
const closedEntries = 4

// sizes are those of what is stored, in bytes.
type sizes struct {
	// A chunk is closed once it is as large as closed, but not before it has closedEntries, unless it is as large as
	// late. It is never larger than most.
	closed, late, most int
	// all is that of all chunks.
	all int
}

// storedSizes has chunks closed that are small: each addition has all of the newest one written again, and what is
// written to a Swarm stays in the memory of its managers until they take their next snapshot.
var storedSizes = sizes{closed: 50_000, late: HistoryKind.MaxBytes / 2, most: HistoryKind.MaxBytes, all: KeepBytes}

// Archive is the history of a cluster's policies as it is stored, as far as whoever adds to it has to know it. It is
// written in chunks, of which only the newest one is written again: what was decided since it was begun is added to it,
// until it is closed. An entry that goes on beyond that is found in both, and is put together by whoever reads them.
type Archive struct {
	sizes  sizes
	chunks []chunk // the oldest first
	// newest is what is in the last of the chunks, where that is not closed, and else what will be in the next one. It
	// is dirty where it holds more than was stored.
	newest History
	open   bool
	dirty  bool
	// next is the number of the next chunk.
	next int
}

// chunk is what is known of a chunk that was stored, or is to be.
type chunk struct {
	number, size int
	until        time.Time
	data         []byte // of one that is not stored yet
}

// OpenArchive returns the archive of what is stored, by name. What can't be read is an error that names it, and the
// archive does without: it begins another chunk.
func OpenArchive(stored map[string][]byte, now time.Time) (*Archive, error) {
	return openArchive(stored, now, storedSizes)
}

func openArchive(stored map[string][]byte, now time.Time, s sizes) (*Archive, error) {
	a := &Archive{sizes: s, next: 1}
	until := now // what can't be read is taken to be as old as what follows it
	numbers, faults := numbersOf(stored)
	for _, number := range slices.Backward(numbers) {
		data := stored[chunkName(number)]
		entries, err := unpack(data, Selection{})
		if err != nil {
			faults = append(faults, &ChunkError{chunkName(number), err})
		} else {
			until = lastIn(entries)
		}
		if number == numbers[len(numbers)-1] {
			a.next = number + 1
			if a.open = err == nil && !s.full(entries, len(data)); a.open {
				a.newest.addAll(entries)
			}
		}
		a.chunks = append(a.chunks, chunk{number: number, size: len(data), until: until})
	}
	slices.Reverse(a.chunks)
	return a, errors.Join(faults...)
}

// numbersOf returns the numbers of the chunks by their names, in ascending order.
func numbersOf(stored map[string][]byte) (numbers []int, faults []error) {
	for _, name := range slices.Sorted(maps.Keys(stored)) {
		number, err := chunkNumber(name)
		if err != nil {
			faults = append(faults, err)
			continue
		}
		numbers = append(numbers, number)
	}
	slices.Sort(numbers)
	return numbers, faults
}

// full reports whether nothing is added to a chunk.
func (s sizes) full(entries []Entry, size int) bool {
	policies := map[string]bool{}
	for i := range entries {
		policies[entries[i].Policy] = true
	}
	return size >= s.late || size >= s.closed && len(entries) >= closedEntries*len(policies)
}

func (h *History) addAll(entries []Entry) {
	for _, e := range entries {
		h.Add(e)
	}
}

// Add adds an entry.
func (a *Archive) Add(e Entry) {
	a.newest.Add(e)
	a.dirty = true
}

// Pack returns the chunks that have to be stored, in this order, and then the names of those that have to be removed:
// what is older than [KeepHistory], and the oldest of what is more than [KeepBytes]. It returns them again until it was
// told of each that this was done.
//
// An entry that can't be stored is an error, and is left out of the history; the others are stored all the same.
func (a *Archive) Pack(now time.Time) (put []Chunk, remove []string, err error) {
	if a.dirty {
		err = a.pack()
	}
	for _, c := range a.chunks {
		if c.data != nil {
			put = append(put, Chunk{chunkName(c.number), c.data})
		}
	}
	size, since := 0, now.Add(-KeepHistory)
	for _, c := range a.chunks {
		size += c.size
	}
	for i, c := range a.chunks {
		if size <= a.sizes.all && !c.until.Before(since) || a.open && i == len(a.chunks)-1 {
			break
		}
		size -= c.size
		remove = append(remove, chunkName(c.number))
	}
	return put, remove, err
}

// Stored tells that a chunk was stored as [Archive.Pack] returned it last.
func (a *Archive) Stored(name string) {
	for i := range a.chunks {
		if chunkName(a.chunks[i].number) == name {
			a.chunks[i].data = nil
			if a.open && i == len(a.chunks)-1 {
				a.dirty = false
			}
		}
	}
}

// Removed tells that a chunk was removed.
func (a *Archive) Removed(name string) {
	a.chunks = slices.DeleteFunc(a.chunks, func(c chunk) bool { return chunkName(c.number) == name })
}

// Newest is the size in bytes of the chunk that is written again with the next entry; 0 where there is none.
func (a *Archive) Newest() int {
	if !a.open {
		return 0
	}
	return a.chunks[len(a.chunks)-1].size
}

// pack has the newest entries be in chunks, of which all but the last are closed.
func (a *Archive) pack() error {
	parts, err := parted(a.newest.entries, a.sizes.most)
	a.newest, a.dirty = History{}, false
	for i, part := range parts {
		if a.open {
			a.chunks = a.chunks[:len(a.chunks)-1] // which is written again
		} else {
			a.next++
		}
		a.chunks = append(a.chunks, chunk{number: a.next - 1, size: len(part.data), until: lastIn(part.entries), data: part.data})
		if a.open = i == len(parts)-1 && !a.sizes.full(part.entries, len(part.data)); a.open {
			a.newest.addAll(part.entries)
			a.dirty = true
		}
	}
	return err
}

// packed are entries, and the chunk that they are in.
type packed struct {
	entries []Entry
	data    []byte
}

// parted returns entries in as many chunks of a size as it takes.
func parted(entries []Entry, most int) ([]packed, error) {
	if len(entries) == 0 {
		return nil, nil
	}
	data, err := pack(entries)
	switch {
	case err == nil && len(data) <= most:
		return []packed{{entries, data}}, nil
	case err == nil && len(entries) == 1:
		return nil, fmt.Errorf("a decision of policy %s takes %d bytes, and %d are stored of one", entries[0].Policy, len(data), most)
	case len(entries) == 1:
		return nil, err
	}
	half := len(entries) / 2
	first, errFirst := parted(entries[:half], most)
	second, errSecond := parted(entries[half:], most)
	return append(first, second...), errors.Join(errFirst, errSecond)
}

// ReadHistory returns what is wanted of a history that is stored, by the names of its chunks, the newest last. What
// can't be read is an error that names it, beside what can.
func ReadHistory(stored map[string][]byte, now time.Time, s Selection) ([]Entry, error) {
	var h History
	numbers, faults := numbersOf(stored)
	for _, number := range numbers {
		entries, err := unpack(stored[chunkName(number)], s)
		if err != nil {
			faults = append(faults, &ChunkError{chunkName(number), err})
		}
		h.addAll(entries)
	}
	return h.Entries(now, s), errors.Join(faults...)
}
