package reconcile_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
	"github.com/trainyard/terraform-provider-trainyard/internal/reconcile"
)

// market is a cluster on which several roles and groups compete for room.
type market struct {
	*testing.T
	*fake
	rnd *rand.Rand
	now time.Time
	// roles are under policies, by group name; yields is the count to which each has to shrink.
	roles  map[string]marketRole
	names  []string
	yields map[string]int
	goes   map[string][]string
	// waiting are the requests for room, and served names those that have it.
	waiting map[string]domain.RoomRequest
	served  map[string]bool
	history []string
}

type marketRole struct{ priority, least int }

func newMarket(t *testing.T, seed uint64) *market {
	t.Helper()
	rnd := rand.New(rand.NewPCG(seed, 1))
	hosts := []float64{float64(3 + rnd.IntN(4))}
	if rnd.IntN(2) == 0 {
		hosts = append(hosts, float64(1+rnd.IntN(4)))
	}
	m := &market{
		T: t, fake: crowded(hosts...), rnd: rnd, now: epoch, roles: map[string]marketRole{},
		waiting: map[string]domain.RoomRequest{}, served: map[string]bool{},
		history: []string{fmt.Sprintf("hosts with %v", hosts)},
	}
	for i := range 2 + rnd.IntN(2) {
		name, role := fmt.Sprintf("low%d", i), marketRole{priority: rnd.IntN(3) - 1, least: rnd.IntN(2)}
		m.shares(t, role.priority, 1, role.least, name)
		m.roles[name], m.names = role, append(m.names, name)
		m.say("%s with priority %d and min %d", name, role.priority, role.least)
	}
	return m
}

func (m *market) say(format string, args ...any) {
	m.history = append(m.history, fmt.Sprintf(format, args...))
}

// wrong fails the test with everything that was done.
func (m *market) wrong(format string, args ...any) {
	m.Helper()
	m.Fatalf("%s after\n%s", fmt.Sprintf(format, args...), strings.Join(m.history, "\n"))
}

func (m *market) count(name string) int {
	return documents[domain.GroupDocument](m.fake)[name].Counts["worker"]
}

// decide makes a role decide like a policy with the algorithm idle_room, carries that out, and returns the change.
func (m *market) decide(name string) int {
	m.Helper()
	role, r, count := m.roles[name], reconcile.Reconciler{Engine: m.fake}, m.count(name)
	m.now = m.now.Add(time.Minute)
	more, _, err := r.Room(within(m.T), name, "worker", 20-count)
	must(m.T, err)
	to := count + more
	if fewer, yields := m.yields[name]; yields && fewer < count {
		to = max(fewer, role.least)
	}
	if to == count {
		return 0
	}
	ready := m.ready(role.priority)
	done, _, err := r.Scale(within(m.T), reconcile.Scaling{
		Group: name, Role: "worker", From: count, To: to, Remove: m.goes[name], At: m.now, Why: "a test",
	})
	must(m.T, err)
	m.say("%s has %d → %d", name, count, done.To)
	switch {
	case done.To < role.least:
		m.wrong("%s is below min", name)
	case done.To < count && !m.outranked(role.priority):
		m.wrong("%s shrinks, and nobody more important waits", name)
	case done.To > count:
		for _, waits := range ready {
			if !slices.Contains(m.ready(role.priority), waits) {
				m.wrong("%s takes the room that was there for %s", name, waits)
			}
		}
	}
	return done.To - count
}

// ready returns the requests of at least this priority for which there is room now.
func (m *market) ready(priority int) (names []string) {
	m.Helper()
	claims, _, err := reconcile.Reconciler{Engine: m.fake}.Share(within(m.T), m.waiting, nil)
	must(m.T, err)
	for _, c := range claims {
		if c.Refusal == nil && len(c.Gone) == 0 && c.Request.Spec.Priority >= priority {
			names = append(names, c.Request.Spec.Name)
		}
	}
	return names
}

// outranked reports whether a request of higher priority waits.
func (m *market) outranked(priority int) bool {
	for _, request := range m.waiting {
		if request.Spec.Priority > priority {
			return true
		}
	}
	return false
}

// share decides which roles yield, and serves requests for which there is room.
func (m *market) share() (claims []reconcile.Claim) {
	m.Helper()
	r := reconcile.Reconciler{Engine: m.fake}
	claims, counts, err := r.Share(within(m.T), m.waiting, nil)
	must(m.T, err)
	m.yields, m.goes = map[string]int{}, map[string][]string{}
	for _, c := range claims {
		for key, gone := range c.Gone {
			name, _, _ := strings.Cut(key, "/")
			if _, known := m.yields[name]; !known {
				m.yields[name] = counts[key]
			}
			m.yields[name] -= len(gone)
			m.goes[name] = append(m.goes[name], gone...)
		}
	}
	return claims
}

// serve applies the first request if there is room for it.
func (m *market) serve(claims []reconcile.Claim) {
	m.Helper()
	for _, c := range claims {
		if c.Refusal != nil {
			continue
		}
		if name := c.Request.Spec.Name; len(c.Gone) == 0 {
			if !c.Request.Sweep { // its runs end before the next step
				must(m.T, reconcile.Reconciler{Engine: m.fake}.Update(within(m.T), c.Request.Spec))
				m.served[name] = true
			}
			m.withdraw(name)
			m.say("%s runs", name)
		}
		return
	}
}

func (m *market) withdraw(name string) {
	delete(m.waiting, name)
	must(m.T, engine.Delete[domain.RoomRequest](m.Context(), m.fake, name))
}

// Whatever is added or removed, and in whatever order roles decide: no role goes below min, none shrinks except for a
// higher priority, and those that yield free enough. Once nobody waits, all counts settle: roles of the same priority
// never take room from each other, and none is left unused.
func TestSharedRoomProperty(t *testing.T) {
	gaveWay := 0
	for seed := range uint64(60) {
		m := newMarket(t, seed)
		for step := range 40 {
			switch m.rnd.IntN(8) {
			case 0:
				name := fmt.Sprintf("urgent%d", step)
				priority, members := m.rnd.IntN(4)-1, 1+m.rnd.IntN(3)
				request := asks(name, priority, members)
				if m.rnd.IntN(3) == 0 {
					request = runsAsk(name, priority, 3*members)
				}
				request.Revision, request.Since = 1, m.now
				set(m.fake, request)
				m.waiting[name] = request
				m.say("%s with priority %d waits for %d, each for itself: %t", request.What(), priority, members,
					request.Sweep)
			case 1:
				for name := range m.served {
					must(t, reconcile.Reconciler{Engine: m.fake}.Destroy(within(t), name))
					delete(m.served, name)
					m.say("%s is gone", name)
					break
				}
			case 2, 3:
				m.serve(m.share())
			case 4:
				// Once all roles that have to yield have done so, there is enough room for the first request.
				claims := m.share()
				for _, name := range m.names {
					if _, yields := m.yields[name]; yields && m.decide(name) < 0 {
						gaveWay++
					}
				}
				for i, c := range m.share() {
					if claims[i].Refusal == nil && (c.Refusal != nil || len(c.Gone) > 0) {
						m.wrong("for %s some gave way, and still %v have to go: %v", c.Request.Spec.Name, c.Gone,
							c.Refusal)
					}
				}
			default:
				m.decide(m.names[m.rnd.IntN(len(m.names))])
			}
		}
		for name := range m.waiting {
			m.withdraw(name)
			m.say("%s waits no more", name)
		}
		m.share()
		m.settle()
	}
	if gaveWay < 30 {
		t.Errorf("%d gave way: that shows little", gaveWay)
	}
}

// settle lets all roles decide until nothing changes, which has to happen soon and to last.
func (m *market) settle() {
	m.Helper()
	still := 0
	for round := 0; still < 3; round++ {
		changed := false
		for _, i := range m.rnd.Perm(len(m.names)) {
			change := m.decide(m.names[i])
			if change < 0 {
				m.wrong("%s shrinks, and nobody waits", m.names[i])
			}
			changed = changed || change != 0
		}
		if still++; changed {
			still = 0
		}
		if round > 20 {
			m.wrong("they don't settle")
		}
	}
	for _, name := range m.names {
		more, _, err := reconcile.Reconciler{Engine: m.fake}.Room(within(m.T), name, "worker", 20-m.count(name))
		must(m.T, err)
		if more > 0 {
			m.wrong("%s leaves room for %d", name, more)
		}
	}
}
