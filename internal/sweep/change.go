package sweep

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"maps"
	"slices"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
)

// Seal identifies a run's own part of what it runs. Equal parts have equal seals, in any process.
func Seal(own domain.RunSpec) string {
	s := sealed(own)
	return string(s[:])
}

// sealed is [Seal] without allocating a string, as each decision seals all ended runs.
func sealed(own domain.RunSpec) (seal [2 * digestBytes]byte) {
	names := slices.AppendSeq(make([]string, 0, 16), maps.Keys(own.Env))
	slices.Sort(names)
	data := make([]byte, 0, 512)
	for _, name := range names {
		data = append(binary.AppendUvarint(data, uint64(len(name))), name...)
		data = append(binary.AppendUvarint(data, uint64(len(own.Env[name]))), own.Env[name]...)
	}
	if own.Config != "" {
		data = append(append(data, 0), own.Config...) // no name is empty
	}
	sum := sha256.Sum256(data)
	hex.Encode(seal[:], sum[:digestBytes])
	return seal
}

// sealOf identifies a value as it is stored.
func sealOf(value any) string {
	data, err := json.Marshal(value) // keys of maps are sorted
	if err != nil {
		panic(err) // a document can always be encoded
	}
	return digest(data)
}

// Change sets in a sweep's next document which runs start over, given the stored document, which is zero for a new
// sweep. A run whose own part changed always starts over, see [Stale].
func Change(stored, next domain.SweepDocument) domain.SweepDocument {
	next.Header, next.ID, next.By, next.Since = stored.Header, stored.ID, stored.By, stored.Since
	next.MinRun, next.MinFailed, next.Anew = stored.MinRun, stored.MinFailed, stored.Anew
	if stored.Revision == 0 {
		next.MinRun = 1
		return next
	}
	before, now := stored.Spec, next.Spec
	program := sealOf(before.Template) != sealOf(now.Template) || pathOf(before.Results) != pathOf(now.Results)
	triggered := !maps.Equal(before.Triggers, now.Triggers)
	needs := before.Resources != now.Resources || sealOf(before.GPUs) != sealOf(now.GPUs)
	switch cmp.Or(now.Rerun, domain.RerunChanged) {
	case domain.RerunChanged:
		if program {
			next.MinRun = stored.Revision + 1
		}
	case domain.RerunAll:
		if program || triggered {
			next.MinRun = stored.Revision + 1
		}
	case domain.RerunFailed:
		if program || triggered || needs {
			next.MinFailed = stored.Revision + 1
		}
	}
	return next
}

// Again sets in a sweep's next document that some runs start over whatever else changes.
func Again(stored, next domain.SweepDocument, keys []string) domain.SweepDocument {
	if len(keys) > 0 {
		next.Anew = maps.Clone(next.Anew)
		if next.Anew == nil {
			next.Anew = make(map[string]int, len(keys))
		}
		for _, key := range keys {
			next.Anew[key] = stored.Revision + 1
		}
	}
	return next
}

// Stale reports whether a run starts over according to its sweep's document, given its own part of what it runs, and
// its stored state.
func Stale(doc domain.SweepDocument, own domain.RunSpec, run domain.Run) bool {
	if run.State == domain.RunPaused && !run.Active() {
		return false // it starts over in any case once it is resumed
	}
	if run.Revision < doc.MinRun || run.Revision < doc.Anew[own.Key] ||
		run.State.Ended() && run.State != domain.RunSucceeded && run.Revision < doc.MinFailed {
		return true
	}
	seal := sealed(own)
	return run.Seal != string(seal[:])
}

// Reruns counts the runs that start over with the next document of a sweep although they were started before.
func Reruns(next domain.SweepDocument, s domain.Sweep, runs map[string]domain.Run) int {
	n := 0
	for key, run := range runs {
		if _, found := s.Runs[key]; found && run.Attempts > 0 && Stale(next, s.Run(key), run) {
			n++
		}
	}
	return n
}
