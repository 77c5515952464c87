package sweep

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
)

// chunkBytes is about how much of runs is stored as one document: well below what any engine stores, and so much that a
// few will do.
const chunkBytes = 200_000

// Split returns the sweep without its runs, and those in chunks that are named by what they hold: another sweep has
// others, and the same runs are the same chunks.
func Split(s domain.Sweep) (domain.Sweep, []domain.SweepRuns, error) {
	var chunks []domain.SweepRuns
	var size int
	for _, key := range s.Keys() {
		data, err := json.Marshal(s.Runs[key])
		if err != nil {
			return s, nil, fmt.Errorf("run %q: %w", key, err)
		}
		if length := len(key) + len(data); len(chunks) == 0 || size+length > chunkBytes {
			chunks, size = append(chunks, domain.SweepRuns{Sweep: s.Name, Runs: map[string]map[string]string{}}), 0
		}
		size += len(key) + len(data)
		chunks[len(chunks)-1].Runs[key] = s.Runs[key]
	}
	for i := range chunks {
		data, err := json.Marshal(chunks[i].Runs)
		if err != nil {
			return s, nil, err
		}
		chunks[i].Name = digest(data)
	}
	s.Runs = nil
	return s, chunks, nil
}

// Join returns the sweep with the runs of its chunks, and the names of those that are missing.
func Join(doc domain.SweepDocument, chunks map[string]domain.SweepRuns) (domain.Sweep, []string) {
	s := doc.Spec
	s.Runs = make(map[string]map[string]string, doc.Count)
	var missing []string
	for _, name := range doc.Chunks {
		chunk, found := chunks[(&domain.SweepRuns{Sweep: s.Name, Name: name}).Key()]
		if !found {
			missing = append(missing, name)
		}
		maps.Copy(s.Runs, chunk.Runs)
	}
	return s, missing
}

// digestBytes are few enough for a name, and enough to be no other's.
const digestBytes = 16

func digest(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:digestBytes])
}
