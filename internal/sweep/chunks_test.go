package sweep

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
)

// split returns the document of a sweep, and its chunks as a store lists them.
func split(t rapid.TB, s domain.Sweep) (domain.SweepDocument, map[string]domain.SweepRuns) {
	t.Helper()
	bare, chunks, err := Split(s)
	if err != nil {
		t.Fatal(err)
	}
	doc := domain.SweepDocument{Spec: bare, Count: len(s.Runs)}
	stored := map[string]domain.SweepRuns{}
	for _, chunk := range chunks {
		data, err := json.Marshal(chunk)
		if err != nil {
			t.Fatal(err)
		}
		var read domain.SweepRuns
		if err := json.Unmarshal(data, &read); err != nil {
			t.Fatal(err)
		}
		if _, twice := stored[chunk.Key()]; twice {
			t.Fatalf("two chunks are called %s", chunk.Key())
		}
		doc.Chunks, stored[chunk.Key()] = append(doc.Chunks, chunk.Name), read
	}
	return doc, stored
}

func TestSplitManyRuns(t *testing.T) {
	s := sweepOf("lr", domain.MaxRuns)
	for key, env := range s.Runs {
		env["CONFIG"] = strings.Repeat("x", 200) + key
	}
	doc, chunks := split(t, s)
	if doc.Spec.Runs != nil || len(s.Runs) != domain.MaxRuns {
		t.Fatal("the document has the runs, or the sweep has lost them")
	}
	if len(chunks) < 10 || len(chunks) > 20 {
		t.Errorf("there are %d chunks", len(chunks))
	}
	for name, chunk := range chunks {
		data, err := json.Marshal(chunk)
		if err != nil || len(data) > 300_000 {
			t.Errorf("chunk %s takes %d bytes, %v", name, len(data), err)
		}
	}
	joined, missing := Join(doc, chunks)
	if len(missing) > 0 || !joined.Equal(s) {
		t.Errorf("%d chunks are missing, and there are %d runs", len(missing), len(joined.Runs))
	}
}

// TestChunksAreNamedByWhatTheyHold checks that the same runs give the same chunks, whatever else has changed, and other
// runs others, even under the same key.
func TestChunksAreNamedByWhatTheyHold(t *testing.T) {
	s := sweepOf("lr", 100)
	s.Runs["r07"] = nil
	doc, _ := split(t, s)
	other := sweepOf("lr", 100)
	other.Runs["r07"], other.Priority, other.Image = nil, 3, "trainer:2"
	if again, _ := split(t, other); !slices.Equal(doc.Chunks, again.Chunks) {
		t.Errorf("the same runs are %v and %v", doc.Chunks, again.Chunks)
	}
	other.Runs["r99"]["LR"] = "2"
	if again, _ := split(t, other); slices.Equal(doc.Chunks, again.Chunks) {
		t.Errorf("other runs are %v, too", again.Chunks)
	}
}

func TestJoinReportsMissing(t *testing.T) {
	s := sweepOf("lr", 3)
	for key, env := range s.Runs {
		env["CONFIG"] = strings.Repeat(key, 45_000)
	}
	doc, chunks := split(t, s)
	if len(doc.Chunks) != 2 {
		t.Fatalf("there are %d chunks", len(doc.Chunks))
	}
	// Chunks of a sweep with another name are ignored.
	foreign := maps.Clone(chunks)
	gone := (&domain.SweepRuns{Sweep: "lr", Name: doc.Chunks[1]}).Key()
	foreign["other/"+doc.Chunks[1]] = foreign[gone]
	delete(foreign, gone)
	joined, missing := Join(doc, foreign)
	if diff := cmp.Diff(doc.Chunks[1:], missing); diff != "" || len(joined.Runs) == 3 {
		t.Errorf("%d runs are there, and it is missing (-want +got):\n%s", len(joined.Runs), diff)
	}
}

func TestSplitAndJoin(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := sweepOf("lr", 0)
		for i := range rapid.IntRange(0, 30).Draw(t, "runs") {
			env := rapid.MapOfN(rapid.StringMatching(`[A-Z]{1,3}`), rapid.String(), 0, 3).Draw(t, "env")
			if size := rapid.SampledFrom([]int{0, 0, 0, 1000, chunkBytes / 3, chunkBytes + 1}).Draw(t,
				"size"); size > 0 {
				env["LONG"] = strings.Repeat("x", size)
			}
			key := fmt.Sprintf("r%d", i)
			s.Runs[key] = env
			if config := rapid.SampledFrom([]string{"", "{}", strings.Repeat("y", chunkBytes/3)}).Draw(t,
				"config"); config != "" {
				if s.Config == nil {
					s.Config = map[string]string{}
				}
				s.Config[key] = config
			}
		}
		doc, chunks := split(t, s)
		joined, missing := Join(doc, chunks)
		if !joined.Equal(s) || len(missing) > 0 {
			t.Fatalf("%v is missing; runs (-want +got):\n%s", missing, cmp.Diff(s.Runs, joined.Runs))
		}
		for key := range joined.Runs {
			if Seal(joined.Run(key)) != Seal(s.Run(key)) {
				t.Fatalf("the seal of %s is another one once it was stored", key)
			}
		}
	})
}
