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
	"github.com/trainyard/terraform-provider-trainyard/internal/command"
	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
	"github.com/trainyard/terraform-provider-trainyard/internal/printable"
)

// told is an engine that tells what is stored of a cluster.
type told struct {
	engine.Engine
	policies map[string]domain.AutoscalingPolicyDocument
	groups   map[string]domain.GroupDocument
	records  map[string]engine.Record
	// failing is the call that fails.
	failing string
}

var errDown = errors.New("the engine is down")

func (e *told) fails(call string) error {
	if e.failing == call {
		return errDown
	}
	return nil
}

func (e *told) Snapshot() engine.Engine { return e }

func (e *told) Cluster(context.Context) (domain.ClusterDocument, error) {
	return domain.ClusterDocument{}, e.fails("Cluster")
}

func (e *told) Policies(context.Context) (map[string]domain.AutoscalingPolicyDocument, error) {
	return e.policies, e.fails("Policies")
}

func (e *told) Group(_ context.Context, name string) (domain.GroupDocument, error) {
	document, found := e.groups[name]
	if !found {
		return document, engine.ErrNotFound
	}
	return document, e.fails("Group")
}

func (e *told) Records(_ context.Context, prefix string) (map[string]engine.Record, error) {
	if prefix != autoscale.ChunkPrefix {
		return nil, errors.New("these are not the history's")
	}
	return e.records, e.fails("Records")
}

// lab is a cluster with a policy for one of two roles, and a history of that and of another one.
func lab(t *testing.T) *told {
	t.Helper()
	archive, err := autoscale.OpenArchive(nil, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	start := time.Now().Add(-3 * time.Hour)
	for i := range 15 {
		archive.Add(autoscale.NewEntry("job/worker", start.Add(time.Duration(i)*10*time.Minute), 1, autoscale.Decision{From: i, To: i + 1}))
	}
	archive.Add(autoscale.NewEntry("old/worker", start, 1, autoscale.Decision{From: 1, To: 2}))
	put, _, err := archive.Pack(start)
	if err != nil {
		t.Fatal(err)
	}
	e := &told{policies: map[string]domain.AutoscalingPolicyDocument{}, groups: map[string]domain.GroupDocument{}, records: map[string]engine.Record{}}
	for _, chunk := range put {
		e.records[chunk.Name] = engine.Record{Name: chunk.Name, Data: chunk.Data}
	}
	e.policies["job/worker"] = *policy()
	e.groups["job"] = domain.GroupDocument{Counts: map[string]int{"worker": 15, "ps": 1}}
	return e
}

func run(t *testing.T, e *told, args string) (string, error) {
	t.Helper()
	var out strings.Builder
	err := Run(t.Context(), append([]string{"explain", "--cluster", "lab"}, strings.Fields(args)...),
		command.Engines{Open: engine.Registry{"process": func(domain.ClusterRef, engine.Settings) (engine.Engine, error) { return e, nil }}}, &out)
	return out.String(), err
}

func TestRun(t *testing.T) {
	for name, c := range map[string]struct {
		args    string
		entries int
		says    []string
	}{
		"the newest":             {"job/worker", 10, []string{"  5 → 6 (1 ready)\n", "  14 → 15 (1 ready)\n", "count   15, of 2 to 8"}},
		"the very newest":        {"job/worker -n 1", 1, []string{"  14 → 15"}},
		"all":                    {"job/worker -n 0", 15, []string{"  0 → 1"}},
		"those of the last time": {"job/worker --since 105m", 7, []string{"  8 → 9"}},
		"none":                   {"job/worker --since 1s", 0, []string{"No decision was recorded in this time."}},
		"a policy that is gone":  {"old/worker", 1, []string{"  1 → 2", "count   –; there is no policy"}},
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

// Whatever members, agents and servers wrote into a history, it is told as lines that can be printed.
func TestRunIsPrintable(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		s := acctest.Hostile().Draw(r, "text")
		archive, err := autoscale.OpenArchive(nil, time.Now())
		if err != nil {
			t.Fatal(err)
		}
		entry := autoscale.NewEntry("job/worker", time.Now(), 1, autoscale.Decision{From: 1, To: 2, Asked: []autoscale.Asked{{Name: s, Why: s}}})
		entry.Changed, entry.Outcome, entry.OutcomeWhy = []string{s, s}, autoscale.OutcomeHeld, s
		archive.Add(entry)
		put, _, err := archive.Pack(time.Now())
		if err != nil {
			t.Fatal(err)
		}
		e := &told{records: map[string]engine.Record{}}
		for _, chunk := range put {
			e.records[chunk.Name] = engine.Record{Name: chunk.Name, Data: chunk.Data}
		}
		for _, args := range []string{"job/worker", "--json"} {
			out, err := run(t, e, args)
			if err != nil || !strings.Contains(out, acctest.HostileMark) || out != printable.Text(out) {
				t.Fatalf("%s: %q can't be printed, or does not tell of it (%v)", args, out, err)
			}
		}
		plain, err := run(t, e, "job/worker")
		if lines := strings.Count(plain, "\n"); err != nil || lines != 7 {
			t.Fatalf("%d lines, want 7, whatever the texts are:\n%s", lines, plain)
		}
	})
}

func TestRunJSON(t *testing.T) {
	for args, want := range map[string]int{"--json": 16, "--json job/worker": 15, "--json job/worker -n 2": 2, "--json --since 105m": 7} {
		out, err := run(t, lab(t), args)
		if lines := strings.Count(out, "\n"); err != nil || lines != want || strings.Count(out, `,"why":"nothing asks for another count"}`) != want {
			t.Errorf("%s: %d lines (%v), want %d:\n%s", args, lines, err, want, out)
		}
	}
}

func TestRunFails(t *testing.T) {
	out, err := run(t, lab(t), "job/chief")
	if want := `cluster lab has no autoscaling policy job/chief, and its history tells of none; the policies are ["job/worker"]`; out != "" || err == nil || err.Error() != want {
		t.Errorf("%v, want %s; and it wrote %q", err, want, out)
	}
	for _, call := range []string{"Cluster", "Policies", "Group", "Records"} {
		e := lab(t)
		e.failing = call
		if out, err := run(t, e, "job/worker"); out != "" || !errors.Is(err, errDown) {
			t.Errorf("%s fails: %v, and it wrote %q", call, err, out)
		}
	}
	// What can't be read of the history is told after what can.
	for _, args := range []string{"job/worker -n 0", "job/worker --json"} {
		e := lab(t)
		e.records["scaling-history-9"] = engine.Record{Name: "scaling-history-9", Data: []byte("x")}
		out, err := run(t, e, args)
		if err == nil || !strings.Contains(err.Error(), "the record scaling-history-9 is no part of a history") || strings.Count(out, "\n") < 15 {
			t.Errorf("%s: %v, and it wrote %q", args, err, out)
		}
	}
}
