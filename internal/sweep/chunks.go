package sweep

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
)

// chunkBytes is roughly how much of the runs one document holds: well below the limit of any engine, but large enough
// that a few suffice.
const chunkBytes = 200_000

// Split returns the sweep without its runs, and the runs in chunks named by their content: the same runs give the same
// chunks.
func Split(s domain.Sweep) (domain.Sweep, []domain.SweepRuns, error) {
	var chunks []domain.SweepRuns
	var size int
	for _, key := range s.Keys() {
		data, err := json.Marshal([]any{s.Runs[key], s.Config[key]})
		if err != nil {
			return s, nil, fmt.Errorf("run %q: %w", key, err)
		}
		if length := len(key) + len(data); len(chunks) == 0 || size+length > chunkBytes {
			chunks, size = append(chunks, domain.SweepRuns{Sweep: s.Name, Runs: map[string]map[string]string{}}), 0
		}
		size += len(key) + len(data)
		chunk := &chunks[len(chunks)-1]
		chunk.Runs[key] = s.Runs[key]
		if config := s.Config[key]; config != "" {
			if chunk.Config == nil {
				chunk.Config = map[string]string{}
			}
			chunk.Config[key] = config
		}
	}
	for i := range chunks {
		data, err := json.Marshal(chunks[i])
		if err != nil {
			return s, nil, err
		}
		chunks[i].Name = digest(data)
	}
	return WithoutRuns(s), chunks, nil
}

// Join returns the sweep with the runs of its chunks, and the names of missing chunks.
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
		if s.Config == nil && len(chunk.Config) > 0 {
			s.Config = make(map[string]string, doc.Count)
		}
		maps.Copy(s.Config, chunk.Config)
	}
	return s, missing
}

// WithoutRuns returns a sweep as its own document holds it.
func WithoutRuns(s domain.Sweep) domain.Sweep {
	s.Runs, s.Config = nil, nil
	return s
}

// digestBytes is short enough for a name, and long enough to be unique.
const digestBytes = 16

func digest(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:digestBytes])
}
