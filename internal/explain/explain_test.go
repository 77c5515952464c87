package explain

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/trainyard/terraform-provider-trainyard/internal/acctest"
	"github.com/trainyard/terraform-provider-trainyard/internal/autoscale"
	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/storetest"
	"github.com/trainyard/terraform-provider-trainyard/internal/printable"
)

// fake is an engine that returns what is stored of a cluster, and nothing else.
type fake struct {
	rest
	storetest.Memory
}

// rest embeds the engine one level deeper, so that the store's methods take precedence.
type rest struct{ engine.Engine }

var errDown = errors.New("the engine is down")

// newFake returns the engine of a cluster with the chunks of a history.
func newFake(t *testing.T, chunks ...autoscale.Chunk) *fake {
	t.Helper()
	e := &fake{}
	put(t, e, domain.ClusterDocument{Spec: domain.Cluster{Name: "lab"}})
	for _, chunk := range chunks {
		e.Set(engine.Item{
			Key: engine.Key{Kind: autoscale.HistoryKind, Name: chunk.Name}, Revision: 1, Data: chunk.Data,
		})
	}
	return e
}

func put[T any, P domain.Document[T]](t *testing.T, e *fake, document T) {
	t.Helper()
	if _, err := engine.Put[T, P](t.Context(), e, document); err != nil {
		t.Fatal(err)
	}
}

// lab returns a cluster with a policy for one of two roles, and a history of that and of another policy.
func lab(t *testing.T) *fake {
	t.Helper()
	archive, err := autoscale.OpenArchive(nil, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	start := time.Now().Add(-3 * time.Hour)
	for i := range 15 {
		archive.Add(autoscale.NewEntry("job/worker", start.Add(time.Duration(i)*10*time.Minute), 1,
			autoscale.Decision{From: i, To: i + 1}))
	}
	archive.Add(autoscale.NewEntry("old/worker", start, 1, autoscale.Decision{From: 1, To: 2}))
	chunks, _, err := archive.Pack(start)
	if err != nil {
		t.Fatal(err)
	}
	e := newFake(t, chunks...)
	put(t, e, *policy())
	put(t, e, domain.GroupDocument{Spec: domain.Group{Name: "job"}, Counts: map[string]int{"worker": 15, "ps": 1}})
	return e
}

func run(t *testing.T, e engine.Engine, args string) (string, error) {
	t.Helper()
	var out strings.Builder
	err := Run(t.Context(), append([]string{"explain", "--cluster", "lab"}, strings.Fields(args)...),
		engine.Registry{"process": {
			Default: true, Open: func(domain.ClusterRef, engine.Settings) (engine.Engine, error) { return e, nil },
		}}, &out)
	return out.String(), err
}

func TestRun(t *testing.T) {
	for name, c := range map[string]struct {
		args    string
		entries int
		says    []string
	}{
		"the newest": {
			"job/worker", 10, []string{"  5 → 6 (1 ready)\n", "  14 → 15 (1 ready)\n", "count   15, of 2 to 8"},
		},
		"the very newest":        {"job/worker -n 1", 1, []string{"  14 → 15"}},
		"all":                    {"job/worker -n 0", 15, []string{"  0 → 1"}},
		"those of the last time": {"job/worker --since 105m", 7, []string{"  8 → 9"}},
		"none":                   {"job/worker --since 1s", 0, []string{"No decisions recorded in this period."}},
		"a policy that is gone":  {"old/worker", 1, []string{"  1 → 2", "count   –; its policy no longer exists"}},
	} {
		out, err := run(t, lab(t), c.args)
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if entries := strings.Count(out, " → "); entries != c.entries {
			t.Errorf("%s: there are %d entries in\n%s", name, entries, out)
		}
		for _, want := range c.says {
			if !strings.Contains(out, want) {
				t.Errorf("%s: %q is not in\n%s", name, want, out)
			}
		}
	}
}

// TestRunIsPrintable checks that the output is printable, whatever members, agents and servers wrote into a history.
func TestRunIsPrintable(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		s := acctest.Hostile().Draw(r, "text")
		archive, err := autoscale.OpenArchive(nil, time.Now())
		if err != nil {
			t.Fatal(err)
		}
		entry := autoscale.NewEntry("job/worker", time.Now(), 1,
			autoscale.Decision{From: 1, To: 2, Asked: []autoscale.Asked{{Name: s, Why: s}}})
		entry.Changed, entry.Outcome, entry.OutcomeWhy = []string{s, s}, autoscale.OutcomeHeld, s
		archive.Add(entry)
		chunks, _, err := archive.Pack(time.Now())
		if err != nil {
			t.Fatal(err)
		}
		e := newFake(t, chunks...)
		for _, args := range []string{"job/worker", "--json"} {
			out, err := run(t, e, args)
			if err != nil || !strings.Contains(out, acctest.HostileMark) || out != printable.Text(out) {
				t.Fatalf("%s: %q can't be printed, or does not show it (%v)", args, out, err)
			}
		}
		plain, err := run(t, e, "job/worker")
		if lines := strings.Count(plain, "\n"); err != nil || lines != 7 {
			t.Fatalf("%d lines, want 7, whatever the texts are:\n%s", lines, plain)
		}
	})
}

func TestRunJSON(t *testing.T) {
	for args, want := range map[string]int{
		"--json": 16, "--json job/worker": 15, "--json job/worker -n 2": 2, "--json --since 105m": 7,
	} {
		out, err := run(t, lab(t), args)
		if lines := strings.Count(out, "\n"); err != nil || lines != want ||
			strings.Count(out, `,"why":"no other count requested"}`) != want {
			t.Errorf("%s: %d lines (%v), want %d:\n%s", args, lines, err, want, out)
		}
	}
}

func TestRunFails(t *testing.T) {
	for _, args := range []string{"job/chief", "job/chief --json"} {
		out, err := run(t, lab(t), args)
		if want := `cluster lab has no autoscaling policy job/chief and no history of one; the policies are ["job/worker"]`; out != "" || err == nil || err.Error() != want {
			t.Errorf("%s: %v, want %s; and it wrote %q", args, err, want, out)
		}
	}
	for _, call := range []string{"Get cluster", "List policy", "Get group", "List scaling-history"} {
		e := engine.Intercept(lab(t), func(_ context.Context, made engine.Call, do func() error) error {
			if made.Name == call {
				return errDown
			}
			return do()
		})
		if out, err := run(t, e, "job/worker"); out != "" || !errors.Is(err, errDown) {
			t.Errorf("%s fails: %v, and it wrote %q", call, err, out)
		}
	}
	// Unreadable parts of the history are reported after the rest was written.
	for _, args := range []string{"job/worker -n 0", "job/worker --json"} {
		e := lab(t)
		e.Set(engine.Item{Key: engine.Key{Kind: autoscale.HistoryKind, Name: "9"}, Revision: 1, Data: []byte("x")})
		out, err := run(t, e, args)
		if err == nil || !strings.Contains(err.Error(), `reading part "9" of the scaling history`) ||
			strings.Count(out, "\n") < 15 {
			t.Errorf("%s: %v, and it wrote %q", args, err, out)
		}
	}
}
