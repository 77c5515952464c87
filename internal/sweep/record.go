package sweep

import (
	"maps"
	"slices"
	"strconv"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
)

// partRuns is the maximum number of runs in a part of a record. A change of one run rewrites its part.
const partRuns = 250

// Remembered returns the runs of a sweep in its records, by key.
func Remembered(doc domain.SweepDocument, records map[string]domain.SweepRecord) map[string]domain.Run {
	runs := make(map[string]domain.Run, doc.Count)
	for _, record := range records {
		if record.Sweep == doc.Spec.Name && record.ID == doc.ID {
			maps.Copy(runs, record.Runs)
		}
	}
	return runs
}

// Record is the stored state of a sweep's runs, in parts. A run stays in the part where it was first stored, so that a
// change of it rewrites only that part.
type Record struct {
	doc    domain.SweepDocument
	runs   map[string]domain.Run
	partOf map[string]string
	parts  map[string]*part
	// open is the part for runs that have no state yet.
	open string
}

type part struct {
	record  domain.SweepRecord // as last read or written, without its runs
	keys    map[string]bool
	changed bool
	// gone are keys that were forgotten since it was stored.
	gone []string
}

// OpenRecord returns the record of a sweep from what is stored.
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
			continue // of an earlier sweep with this name: to be overwritten
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

// Runs returns the stored state of the runs, by key. The map belongs to the record, and only Set changes it.
func (r *Record) Runs() map[string]domain.Run { return r.runs }

// Set sets the state of a run.
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

// Forget removes a run. Until its part is stored without it, no other part may have it.
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
			r.parts[name] = &part{
				record: domain.SweepRecord{Sweep: r.doc.Spec.Name, Part: name}, keys: map[string]bool{},
			}
		} else if len(p.keys) >= partRuns {
			continue
		}
		r.open = name
		return name
	}
}

// Changed returns the parts that have to be stored. [Record.Stored] has to be called for each that was.
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

// Stored records that a part was stored.
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
