package autoscale

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
)

func TestIdleRoom(t *testing.T) {
	for name, test := range map[string]struct {
		count, keep int
		room        *Room
		want        proposal
	}{
		"room for some": {3, 0, &Room{More: 4}, proposal{count: 7, why: "room for 4 more members"}},
		"for one":       {3, 0, &Room{More: 1}, proposal{count: 4, why: "room for 1 more member"}},
		"some is kept free": {
			3, 1, &Room{More: 4}, proposal{count: 6, why: "room for 4 more members, of which keep_free reserves 1"},
		},
		"all of it is": {
			3, 4, &Room{More: 4}, proposal{count: 3, why: "room for 4 more members, all kept free by keep_free (4)"},
		},
		"others took what was": {
			3, 4, &Room{More: 0, Short: "no CPUs"}, proposal{count: 3, why: "no room for more members: no CPUs"},
		},
		"no more than max allows": {9, 0, &Room{More: 4}, proposal{count: 9, why: "max is reached"}},
		"the room is unknown": {
			3, 0, &Room{Why: "no manager answers"},
			proposal{count: 3, abstains: true, why: "it is unknown how much room there is: no manager answers"},
		},
		"no bound is known": {3, 0, nil, proposal{count: 9, why: "no known limit on room"}},
	} {
		t.Run(name, func(t *testing.T) {
			in := asking{count: test.count, room: test.room, policy: &domain.AutoscalingPolicy{Min: 1, Max: 9}}
			if diff := cmp.Diff(test.want, idleRoom(domain.IdleRoomAlgorithm{KeepFree: test.keep}, in),
				cmp.AllowUnexported(proposal{})); diff != "" {
				t.Errorf("proposal (-want +got):\n%s", diff)
			}
		})
	}
}

// idler returns the policy of a role that grows into idle room, with changes.
func idler(t *testing.T, changes ...func(p *domain.AutoscalingPolicy)) *Autoscaler {
	t.Helper()
	p := domain.AutoscalingPolicy{
		Cluster: "lab", Group: "low", Role: "worker", Min: 1, Max: 9,
		Metrics: map[string]domain.ScalingMetric{
			"room": {Algorithm: domain.ScalingAlgorithm{IdleRoom: &domain.IdleRoomAlgorithm{}}},
		},
	}
	for _, change := range changes {
		change(&p)
	}
	if err := p.ValidateSources().Err(); err != nil {
		t.Fatal(err)
	}
	a, err := New(p)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// TestYields checks that a role yields at once, whatever damps its metrics. Only guards can prevent it, and then
// completely; it never goes below its minimum.
func TestYields(t *testing.T) {
	urgent := func(count int) *Yield { return &Yield{Count: count, For: `group "urgent", with priority 10`} }
	source := domain.GuardSource{HTTP: &domain.HTTPQueue{URL: "http://data", Path: "n"}}
	for name, test := range map[string]struct {
		change func(p *domain.AutoscalingPolicy)
		seen   func(s *Seen)
		want   int
		says   string
	}{
		"at once": {func(p *domain.AutoscalingPolicy) {
			p.ScaleIn = domain.ScalingBehaviour{
				Cooldown: new(domain.Duration(time.Hour)), MaxStep: 1,
				Rates: []domain.ScalingRate{{Count: 1, Period: domain.Duration(time.Minute)}},
			}
		}, func(s *Seen) {
			s.Yield = urgent(2)
		}, 2, `gives way to group "urgent", with priority 10, down to 2 members`},
		"never below min": {
			func(p *domain.AutoscalingPolicy) { p.Min = 3 }, func(s *Seen) { s.Yield = urgent(2) }, 3,
			"down to 3 members",
		},
		"nobody waits":       {nil, func(*Seen) {}, 6, ""},
		"as many are wanted": {nil, func(s *Seen) { s.Yield = urgent(6) }, 6, ""},
		"a hook is at work": {
			nil, func(s *Seen) { s.Yield, s.Busy = urgent(2), "a hook is at work" }, 6,
			"2 wanted, but a hook is at work",
		},
		"paused": {
			func(p *domain.AutoscalingPolicy) { p.Paused = domain.PauseIn }, func(s *Seen) { s.Yield = urgent(2) }, 6,
			"scaling in is paused",
		},
		"some are needed: none": {func(p *domain.AutoscalingPolicy) { p.Guards.AtLeast = &source }, func(s *Seen) {
			s.Yield, s.Guards = urgent(2), map[string]Measurement{domain.GuardAtLeast: {Value: 4, At: noon}}
		}, 6, "guards.at_least requires 4"},
		"those that are needed": {func(p *domain.AutoscalingPolicy) { p.Guards.AtLeast = &source }, func(s *Seen) {
			s.Yield, s.Guards = urgent(4), map[string]Measurement{domain.GuardAtLeast: {Value: 4, At: noon}}
		}, 4, "gives way"},
		"a source can't be read": {
			func(p *domain.AutoscalingPolicy) { p.Guards.Busy = &domain.BusyGuard{GuardSource: source} },
			func(s *Seen) { s.Yield = urgent(2) }, 6, "it is unknown whether the role is busy",
		},
	} {
		t.Run(name, func(t *testing.T) {
			changes := []func(p *domain.AutoscalingPolicy){}
			if test.change != nil {
				changes = append(changes, test.change)
			}
			a := idler(t, changes...)
			seen := Seen{Now: noon, Count: 6, Ready: 6, Room: &Room{More: 0, Short: "no CPUs"}}
			test.seen(&seen)
			state := State{Since: noon.Add(-time.Hour), LastChange: noon.Add(-time.Second)}
			d := a.Decide(&state, seen)
			if d.To != test.want || !strings.Contains(d.Why(), test.says) {
				t.Errorf("it decides on %d: %s", d.To, d.Why())
			}
		})
	}
}

// TestSpare checks that the lowest possible count is known without asking the role to yield, from its guards.
func TestSpare(t *testing.T) {
	source := domain.GuardSource{HTTP: &domain.HTTPQueue{URL: "http://data", Path: "n"}}
	a := idler(t, func(p *domain.AutoscalingPolicy) { p.Guards.AtLeast = &source })
	for name, test := range map[string]struct {
		guards map[string]Measurement
		held   string
		want   int
		says   string
	}{
		"some are needed": {
			map[string]Measurement{domain.GuardAtLeast: {Value: 4, At: noon}}, "", 4, "guards.at_least requires 4",
		},
		"none are":            {map[string]Measurement{domain.GuardAtLeast: {Value: 0, At: noon}}, "", 1, ""},
		"the need is unknown": {nil, "", 6, "it is unknown how many are needed"},
		"an apply has it": {
			map[string]Measurement{domain.GuardAtLeast: {Value: 0, At: noon}}, "an apply is at work", 6,
			"an apply is at work",
		},
		"more than there is": {
			map[string]Measurement{domain.GuardAtLeast: {Value: 40, At: noon}}, "", 6, "guards.at_least requires 40",
		},
	} {
		t.Run(name, func(t *testing.T) {
			seen := Seen{Now: noon, Count: 6, Ready: 6, Guards: test.guards, Held: test.held}
			state := State{}
			count, why := a.Spare(seen, a.Decide(&state, seen).Guards)
			if count != test.want || !strings.Contains(why, test.says) || (why == "") != (test.says == "") {
				t.Errorf("it can be brought to %d: %s", count, why)
			}
		})
	}
}
