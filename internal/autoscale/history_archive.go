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

// closedEntries is how many entries per policy, on average, a chunk has before it is closed. An entry that continues
// starts over in the next chunk.
const closedEntries = 4

// sizes are sizes of stored chunks, in bytes.
type sizes struct {
	// A chunk of size closed is closed once it has closedEntries, one of size late in any case. It is never larger than
	// most.
	closed, late, most int
	// all is the total size of all chunks.
	all int
}

// storedSizes keeps chunks small: each addition rewrites all of the newest one, and what is written to a Swarm stays in
// its managers' memory until their next snapshot.
var storedSizes = sizes{closed: 50_000, late: HistoryKind.MaxBytes / 2, most: HistoryKind.MaxBytes, all: KeepBytes}

// Archive is the stored history of a cluster's policies, as far as the writer needs it. It is written in chunks, of
// which only the newest is rewritten: new decisions are added to it until it is closed. An entry that continues beyond
// that is in both chunks, and readers merge it.
type Archive struct {
	sizes  sizes
	chunks []chunk // the oldest first
	// newest is the content of the last chunk if that is open, and of the next one otherwise. dirty means that it holds
	// more than was stored.
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
	data         []byte // if it is not stored yet
}

// OpenArchive returns the archive of stored chunks, by name. If some can't be read, it returns an error that names
// them, and the archive works without them, beginning with a new chunk.
func OpenArchive(stored map[string][]byte, now time.Time) (*Archive, error) {
	return openArchive(stored, now, storedSizes)
}

func openArchive(stored map[string][]byte, now time.Time, s sizes) (*Archive, error) {
	a := &Archive{sizes: s, next: 1}
	until := now // an unreadable chunk counts as old as the one after it
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

// full reports whether nothing is added to a chunk any more.
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

// Pack returns the chunks to store, in this order, and then the names of those to remove: those older than
// [KeepHistory], and the oldest beyond [KeepBytes]. It returns each again until it is reported as done.
//
// If an entry can't be stored, that is an error, and it is left out of the history. The others are stored anyway.
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

// Stored reports that a chunk was stored as [Archive.Pack] last returned it.
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

// Removed reports that a chunk was removed.
func (a *Archive) Removed(name string) {
	a.chunks = slices.DeleteFunc(a.chunks, func(c chunk) bool { return chunkName(c.number) == name })
}

// Newest returns the size in bytes of the chunk that the next entry rewrites; 0 if there is none.
func (a *Archive) Newest() int {
	if !a.open {
		return 0
	}
	return a.chunks[len(a.chunks)-1].size
}

// pack puts the newest entries into chunks, of which all but the last are closed.
func (a *Archive) pack() error {
	parts, err := parted(a.newest.entries, a.sizes.most)
	a.newest, a.dirty = History{}, false
	for i, part := range parts {
		if a.open {
			a.chunks = a.chunks[:len(a.chunks)-1] // it is rewritten
		} else {
			a.next++
		}
		a.chunks = append(a.chunks,
			chunk{number: a.next - 1, size: len(part.data), until: lastIn(part.entries), data: part.data})
		if a.open = i == len(parts)-1 && !a.sizes.full(part.entries, len(part.data)); a.open {
			a.newest.addAll(part.entries)
			a.dirty = true
		}
	}
	return err
}

// packed is a chunk and its entries.
type packed struct {
	entries []Entry
	data    []byte
}

// parted splits entries into as many chunks of at most this size as needed.
func parted(entries []Entry, most int) ([]packed, error) {
	if len(entries) == 0 {
		return nil, nil
	}
	data, err := pack(entries)
	switch {
	case err == nil && len(data) <= most:
		return []packed{{entries, data}}, nil
	case err == nil && len(entries) == 1:
		return nil, fmt.Errorf("a decision of policy %s takes %d bytes; the limit is %d", entries[0].Policy, len(data),
			most)
	case len(entries) == 1:
		return nil, err
	}
	half := len(entries) / 2
	first, errFirst := parted(entries[:half], most)
	second, errSecond := parted(entries[half:], most)
	return append(first, second...), errors.Join(errFirst, errSecond)
}

// ReadHistory returns the selected entries of a stored history, given its chunks by name, newest last. Chunks that
// can't be read are named in the error, which comes with the readable rest.
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
