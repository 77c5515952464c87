package top

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/gdamore/tcell/v3"
	"github.com/google/go-cmp/cmp"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/overview"
	"github.com/trainyard/terraform-provider-trainyard/internal/reconcile"
	"github.com/trainyard/terraform-provider-trainyard/internal/sweep"
)

// labOfSweep returns a cluster with a sweep of four runs, whose tab is shown.
func labOfSweep() state {
	s := lab()
	begin := s.reading.At.Add(-90 * time.Second)
	seal := func(key string) string { return sweep.Seal(domain.RunSpec{Key: key}) }
	s.query.tab = tabSweeps
	s.sweeps = &overview.Sweeps{
		Found: map[string]reconcile.Sweep{"lr": {
			Spec: domain.Sweep{
				Name: "lr", Objective: &domain.Objective{},
				Runs: map[string]map[string]string{"a": {}, "b": {}, "c": {}, "d": {}},
			},
			Runs: map[string]domain.Run{
				"a": {
					Seal: seal("a"), State: domain.RunRunning, StartedAt: &begin, Attempts: 1,
					Assignment: &domain.Assignment{Host: "gpu1", GPUs: uuidB},
				},
				"b": {
					Seal: seal("b"), State: domain.RunSucceeded, Value: new(0.97), StartedAt: &begin,
					FinishedAt: &s.reading.At, Attempts: 2,
					Assignment: &domain.Assignment{Host: "gpu2"},
				},
				"c": {Seal: seal("c"), State: domain.RunFailed, Reason: "exit code 1\x1b", Attempts: 3},
			},
		}},
		Waits: map[string]string{"lr": "no GPU of pool a40 is free"},
	}
	return s
}

func TestSweepTables(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*state)
		width  int
		want   string
	}{
		"all": {func(*state) {}, 0, `
lr  1 queued, 1 running, 1 succeeded, 1 failed  about 2m15s left
  no GPU of pool a40 is free
RUN  STATE      VALUE  ATTEMPT  PLACE    TOOK
b    succeeded   0.97        2  gpu2    1m30s
a    running        –        1  gpu1:1  1m30s
c    failed         –        3  –           –
  exit code 1�
d    queued         –        0  –           –
`},
		"filtered, on a narrow screen": {func(s *state) { s.filter = "EXIT CODE" }, 28, `
lr  1 queued, 1 running, 1 …
  no GPU of pool a40 is free
RUN  STATE   VALUE  TOOK
c    failed      –     –
  exit code 1�
`},
		"none":       {func(s *state) { s.sweeps.Found = nil }, 0, "No sweeps.\n"},
		"not so far": {func(s *state) { s.sweeps = nil }, 0, "Waiting for the first answer.\n"},
	} {
		t.Run(name, func(t *testing.T) {
			s := labOfSweep()
			c.change(&s)
			f := s.frame(byName, c.width)
			f.head = nil
			if diff := cmp.Diff(c.want, shown(f)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestLogLines(t *testing.T) {
	for name, c := range map[string]struct {
		member, filter string
		width          int
		want           string
	}{
		"all":               {"job-ps-0", "", 0, "step 1\nstep    2, loss 0.5\n\n�[31mfailed\n"},
		"filtered":          {"job-ps-0", "LOSS", 0, "step    2, loss 0.5\n"},
		"on a small screen": {"job-ps-0", "loss", 10, "step    2,\n loss 0.5\n"},
		"nothing matches":   {"job-ps-0", "accuracy", 0, "No output.\n"},
		"not read so far":   {"job-worker-2", "", 0, "Waiting for the first answer.\n"},
		"of nobody":         {"", "", 0, "No members.\n"},
	} {
		t.Run(name, func(t *testing.T) {
			s := lab()
			s.query, s.filter = query{tabLogs, c.member}, c.filter
			s.log = memberLog{"job-ps-0", []string{"step 1", "step\t2, loss 0.5", "", "\x1b[31mfailed"}}
			f := s.frame(byName, c.width)
			f.head = nil
			if diff := cmp.Diff(c.want, shown(f)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestWhose checks whose log is shown: first that of a failed member, then of its neighbours, around the table.
func TestWhose(t *testing.T) {
	all, none := lab().reading, overview.Reading{}
	well := lab().reading
	well.Observed[2].State = domain.StateRunning
	for name, c := range map[string]struct {
		reading overview.Reading
		chosen  string
		further int
		want    string
	}{
		"a failed one":   {all, "", 0, "job-worker-10"},
		"the first":      {well, "", 0, "job-ps-0"},
		"the same again": {all, "job-worker-2", 0, "job-worker-2"},
		"the next":       {all, "job-worker-2", 1, "job-worker-3"},
		"the first next": {all, "job-worker-10", 1, "job-ps-0"},
		"the last":       {all, "job-ps-0", -1, "job-worker-10"},
		"far back":       {all, "job-ps-0", -9, "job-worker-10"},
		"one that went":  {well, "job-worker-11", 1, "job-ps-0"},
		"nobody":         {none, "job-ps-0", 1, ""},
	} {
		if got := whose(c.reading, c.chosen, c.further); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// TestOtherLogs checks that the keys for the log of another member do nothing where no log is shown.
func TestOtherLogs(t *testing.T) {
	v := &view{tab: tabCluster, top: 3}
	for range 9 {
		v.key(tcell.NewEventKey(tcell.KeyLeft, "", tcell.ModNone))
	}
	if v.further != 0 || v.top != 3 {
		t.Errorf("the next log is %d members further, and line %d is the first shown", v.further, v.top)
	}
	v.tab = tabLogs
	v.key(tcell.NewEventKey(tcell.KeyRight, "", tcell.ModNone))
	if v.further != 1 || v.top != 0 {
		t.Errorf("the next log is %d members further, and line %d is the first shown", v.further, v.top)
	}
}

// TestTabLine checks that the tab shown stands out, with the member whose log it is.
func TestTabLine(t *testing.T) {
	for q, want := range map[query]string{
		{}:                            "1 *cluster*  2 sweeps  3 logs",
		{tabSweeps, ""}:               "1 cluster  2 *sweeps*  3 logs",
		{tabLogs, "job-ps-0\x1b[31m"}: "1 cluster  2 sweeps  3 *logs of job-ps-0�[31m*",
	} {
		var b strings.Builder
		for _, span := range (state{query: q}).tabLine().printable() {
			if word := strings.TrimSpace(span.text); span.tone == good {
				span.text = strings.Replace(span.text, word, fmt.Sprintf("*%s*", word), 1)
			}
			b.WriteString(span.text)
		}
		if got := strings.TrimSpace(b.String()); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
