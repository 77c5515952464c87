package sweep

import (
	"maps"
	"slices"
	"strconv"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
)

// partRuns is how many runs a part of a record holds at most: a change of one run writes its part anew.
const partRuns = 250

// Remembered returns what records tell of a sweep's runs, by their keys.
func Remembered(doc domain.SweepDocument, records map[string]domain.SweepRecord) map[string]domain.Run {
	runs := make(map[string]domain.Run, doc.Count)
	for _, record := range records {
		if record.Sweep == doc.Spec.Name && record.ID == doc.ID {
			maps.Copy(runs, record.Runs)
		}
	}
	return runs
}

// Record is what is remembered of a sweep's runs, in parts. A run stays in the part in which it was remembered first,
// so that a change of it is a write of that part alone.
type Record struct {
	doc    domain.SweepDocument
	runs   map[string]domain.Run
	partOf map[string]string
	parts  map[string]*part
	// open is the part that takes runs of which nothing was remembered yet.
	open string
}

type part struct {
	record  domain.SweepRecord // as it was read or written last, but for its runs
	keys    map[string]bool
	changed bool
	// gone are keys that were forgotten since it was stored.
	gone []string
}

// OpenRecord returns what records tell of a sweep.
func OpenRecord(doc domain.SweepDocument, records map[string]domain.SweepRecord) *Record {
	r := &Record{doc: doc, runs: map[string]domain.Run{}, partOf: map[string]string{}, parts: map[string]*part{}}
	for _, name := range slices.Sorted(maps.Keys(records)) {
		record := records[name]
		if record.Sweep != doc.Spec.Name {
			continue
		}
		p := &part{record: record, keys: map[string]bool{}}
		p.record.Runs = nil
		r.parts[record.Part] = p
		if record.ID != doc.ID {
			continue // of one that had the name: to be written over
		}
		for key, run := range record.Runs {
			p.keys[key], r.partOf[key], r.runs[key] = true, record.Part, run
		}
		if len(p.keys) < partRuns {
			r.open = record.Part
		}
	}
	return r
}

// Runs returns what is remembered, by key. It is the record's own: only Set changes it.
func (r *Record) Runs() map[string]domain.Run { return r.runs }

// Set remembers a run.
func (r *Record) Set(key string, run domain.Run) {
	name, known := r.partOf[key]
	if !known {
		name = r.room()
		r.partOf[key] = name
	}
	r.runs[key] = run
	r.parts[name].keys[key] = true
	r.parts[name].changed = true
}

// Forget forgets a run. Until its part is stored without it, no other part may have it.
func (r *Record) Forget(key string) {
	if _, remembered := r.runs[key]; remembered {
		name := r.partOf[key]
		delete(r.runs, key)
		delete(r.parts[name].keys, key)
		r.parts[name].gone = append(r.parts[name].gone, key)
		r.parts[name].changed = true
	}
}

// room returns a part with room for one more run.
func (r *Record) room() string {
	if p := r.parts[r.open]; p != nil && len(p.keys) < partRuns {
		return r.open
	}
	for i := 0; ; i++ {
		name := strconv.Itoa(i)
		if p := r.parts[name]; p == nil {
			r.parts[name] = &part{record: domain.SweepRecord{Sweep: r.doc.Spec.Name, Part: name}, keys: map[string]bool{}}
		} else if len(p.keys) >= partRuns {
			continue
		}
		r.open = name
		return name
	}
}

// Changed returns the parts to be stored; [Record.Stored] is told of each that was.
func (r *Record) Changed() []domain.SweepRecord {
	var changed []domain.SweepRecord
	for _, name := range slices.Sorted(maps.Keys(r.parts)) {
		p := r.parts[name]
		if !p.changed {
			continue
		}
		record := p.record
		record.ID, record.Runs = r.doc.ID, make(map[string]domain.Run, len(p.keys))
		for key := range p.keys {
			record.Runs[key] = r.runs[key]
		}
		changed = append(changed, record)
	}
	return changed
}

// Stored notes that a part was stored.
func (r *Record) Stored(record domain.SweepRecord) {
	p := r.parts[record.Part]
	for _, key := range p.gone {
		if !p.keys[key] {
			delete(r.partOf, key)
		}
	}
	p.record, p.changed, p.gone = record, false, nil
	p.record.Runs = nil
}
