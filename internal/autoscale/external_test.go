package autoscale

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
)

func TestParseAnswer(t *testing.T) {
	for text, want := range map[string]Answer{
		`{"count": 4}`:                 {Count: new(4)},
		`{"count": 0, "more": [1]}`:    {Count: new(0)},
		`{"action": "up"}`:             {Action: "up"},
		` {"action":"none"} `:          {Action: "none"},
		`{"count": 4, "action": "up"}`: {Why: "its answer has both a count and an action"},
		`{"count": -1}`:                {Why: "its count is -1; it must be a whole number from 0 to 10000"},
		`{"count": 1.5}`:               {Why: "its count is 1.5; it must be a whole number from 0 to 10000"},
		`{"count": 1e9}`:               {Why: "its count is 1e+09; it must be a whole number from 0 to 10000"},
		`{"action": "sideways"}`:       {Why: `its action is "sideways"; it must be up, down or none`},
		`{}`:                           {Why: "its answer has neither a count nor an action"},
		`null`:                         {Why: "its answer has neither a count nor an action"},
		`up`:                           {Why: `its answer, "up", is not JSON such as {"count": 4} or {"action": "up"}`},
		"5\n":                          {Why: `its answer, "5", is not JSON such as {"count": 4} or {"action": "up"}`},
		`{"count": "4"}`: {
			Why: `its answer, "{\"count\": \"4\"}", is not JSON such as {"count": 4} or {"action": "up"}`,
		},
	} {
		if diff := cmp.Diff(want, ParseAnswer([]byte(text))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", text, diff)
		}
	}
}

func FuzzParseAnswer(f *testing.F) {
	for _, seed := range []string{`{"count": 4}`, `{"action": "down"}`, `{"count": "4"}`, `[]`, ``} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		a := ParseAnswer(data)
		kinds := 0
		for _, is := range []bool{a.Count != nil, a.Action != "", a.Why != ""} {
			if is {
				kinds++
			}
		}
		if kinds != 1 || a.Count != nil && (*a.Count < 0 || *a.Count > domain.MaxReplicas) {
			t.Errorf("%q is %+v", data, a)
		}
	})
}

func TestExternal(t *testing.T) {
	for name, test := range map[string]struct {
		answer   Answer
		want     int
		abstains bool
		says     string
	}{
		"a count":   {Answer{Count: new(7)}, 7, false, "it answered 7"},
		"up":        {Answer{Action: "up"}, 5, false, "it answered up"},
		"down":      {Answer{Action: "down"}, 3, false, "it answered down"},
		"none":      {Answer{Action: "none"}, 4, false, "it answered none"},
		"a failure": {Answer{Why: "it did not answer within 10s"}, 4, true, "it did not answer within 10s"},
		"nothing":   {Answer{}, 4, true, "it was not asked"},
	} {
		t.Run(name, func(t *testing.T) {
			p := external(asking{now: noon, count: 4, answer: test.answer})
			if p.count != test.want || p.abstains != test.abstains || p.why != test.says {
				t.Errorf("%+v", p)
			}
		})
	}
	if p := external(asking{count: 0, answer: Answer{Action: "down"}}); p.count != 0 {
		t.Errorf("down from none is %d", p.count)
	}
}

// TestAsk checks that the question has the metrics as they are: nothing missing or stale appears as a number.
func TestAsk(t *testing.T) {
	policy := policyOf(map[string]domain.ScalingMetric{
		"cpu": targetOf(50), "old": targetOf(50), "gone": targetOf(50), "seen": {},
		"peers": {Algorithm: domain.ScalingAlgorithm{Ratio: &domain.RatioAlgorithm{Role: "ps", Per: 2}}},
	})
	q := scalerOf(t,
		policy).Ask(Seen{Now: noon, Count: 4, Ready: 3, Roles: map[string]int{"ps": 2}, Metrics: map[string]Measurement{
		"cpu": {Value: 40, At: noon}, "old": {Value: 40, At: noon.Add(-time.Hour)}, "gone": {Why: "gone"},
		"seen": {Value: 812, At: noon},
	}})
	want := Question{
		Cluster: "lab", Group: "job", Role: "worker", Now: noon, Count: 4, Ready: 3, Min: 1, Max: 10,
		Metrics: map[string]*float64{"cpu": new(40.0), "old": nil, "gone": nil, "seen": new(812.0)},
		Roles:   map[string]int{"ps": 2},
	}
	if diff := cmp.Diff(want, q); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
