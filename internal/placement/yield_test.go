package placement

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// spread returns members of a role by name, "<role><index>@<host>".
func spread(role string, hosts string) []string {
	var members []string
	for i, host := range strings.Split(hosts, "") {
		members = append(members, fmt.Sprintf("%s%d@%s", role, i, host))
	}
	return members
}

// slots returns a function that reports whether this many slots are free on one of the hosts, or on a certain one. Each
// member takes one.
func slots(holdings []Holding, capacity map[string]int, need int, on string) func(map[string]bool) bool {
	return func(gone map[string]bool) bool {
		free := maps.Clone(capacity)
		for _, h := range holdings {
			for _, m := range h.Members {
				if !gone[m] {
					_, host, _ := strings.Cut(m, "@")
					free[host]--
				}
			}
		}
		for host, n := range free {
			if n >= need && (on == "" || on == host) {
				return true
			}
		}
		return false
	}
}

// TestYield checks that no member goes needlessly, and that the least important go first. Which members of a role go
// depends on their order, or on whose room is useful.
func TestYield(t *testing.T) {
	for name, test := range map[string]struct {
		holdings []Holding
		capacity map[string]int
		need     int
		on       string
		// want are those that go; nil if it does not fit anyway.
		want []string
	}{
		"there is room": {[]Holding{{Key: "l", Members: spread("l", "aa")}}, map[string]int{"a": 3}, 1, "", []string{}},
		"the last ones": {
			[]Holding{{Key: "l", Members: spread("l", "aaaa")}}, map[string]int{"a": 4}, 2, "",
			[]string{"l2@a", "l3@a"},
		},
		"no more than there are beyond the least": {
			[]Holding{{Key: "l", Least: 3, Members: spread("l", "aaaa")}}, map[string]int{"a": 4}, 2, "", nil,
		},
		"down to the least": {
			[]Holding{{Key: "l", Least: 2, Members: spread("l", "aaaa")}}, map[string]int{"a": 4}, 2, "",
			[]string{"l2@a", "l3@a"},
		},
		"the less important one": {
			[]Holding{
				{Key: "m", Priority: -1, Members: spread("m", "aa")},
				{Key: "l", Priority: -2, Members: spread("l", "aa")},
			}, map[string]int{"a": 4}, 2, "", []string{"l0@a", "l1@a"},
		},
		"the more important one as well, for what is lacking": {
			[]Holding{
				{Key: "m", Priority: -1, Members: spread("m", "aa")},
				{Key: "l", Priority: -2, Least: 1, Members: spread("l", "aa")},
			}, map[string]int{"a": 4}, 2, "", []string{"l1@a", "m1@a"},
		},
		"what the important one needs comes after what each has to keep": {
			[]Holding{
				{Key: "m", Priority: -1, Members: spread("m", "aaa")},
				{Key: "l", Priority: -2, Least: 1, Members: spread("l", "a")},
			}, map[string]int{"a": 4}, 1, "", []string{"m2@a"},
		},
		"whose room is of use": {
			[]Holding{{Key: "l", Members: spread("l", "abab")}}, map[string]int{"a": 2, "b": 2}, 2, "",
			[]string{"l1@b", "l3@b"},
		},
		"in order, however many that takes": {
			[]Holding{{Key: "l", InOrder: true, Members: spread("l", "abab")}}, map[string]int{"a": 2, "b": 2}, 2, "",
			[]string{"l1@b", "l2@a", "l3@b"},
		},
		"any may stay as the least": {
			[]Holding{{Key: "l", Least: 1, Members: spread("l", "ab")}}, map[string]int{"a": 1, "b": 1}, 1, "a",
			[]string{"l0@a"},
		},
		"in order, the first stays": {
			[]Holding{{Key: "l", Least: 1, InOrder: true, Members: spread("l", "ab")}}, map[string]int{"a": 1, "b": 1},
			1, "a", nil,
		},
		"where it is of no use": {
			[]Holding{{Key: "l", Members: spread("l", "bb")}}, map[string]int{"a": 1, "b": 2}, 2, "a", nil,
		},
		"nobody is there": {nil, map[string]int{"a": 1}, 2, "", nil},
		"fewer than the least": {
			[]Holding{{Key: "l", Least: 2, Members: spread("l", "a")}}, map[string]int{"a": 2}, 2, "", nil,
		},
	} {
		t.Run(name, func(t *testing.T) {
			gone, ok := Yield(test.holdings, slots(test.holdings, test.capacity, test.need, test.on))
			if ok != (test.want != nil) {
				t.Fatalf("it fits: %t", ok)
			}
			if diff := cmp.Diff(test.want, append([]string{}, slices.Sorted(maps.Keys(gone))...)); ok && diff != "" {
				t.Errorf("who goes (-want +got):\n%s", diff)
			}
		})
	}
}

// TestYieldProperty checks that just enough members go: none of them could stay, no more go than may, and with InOrder
// none goes before those after it.
func TestYieldProperty(t *testing.T) {
	rnd := rand.New(rand.NewPCG(7, 11))
	fitted := 0
	for range 3000 {
		hosts, capacity := "abc"[:1+rnd.IntN(3)], map[string]int{}
		for _, host := range hosts {
			capacity[string(host)] = rnd.IntN(4)
		}
		var holdings []Holding
		for i := range 1 + rnd.IntN(4) {
			where := ""
			for range rnd.IntN(6) {
				host := hosts[rnd.IntN(len(hosts))]
				capacity[string(host)]++
				where += string(host)
			}
			key := string(rune('p' + i))
			h := Holding{Key: key, Priority: rnd.IntN(3), Least: rnd.IntN(3), InOrder: rnd.IntN(2) == 0}
			if where != "" {
				h.Members = spread(key, where)
			}
			h.Least = min(h.Least, len(h.Members))
			holdings = append(holdings, h)
		}
		fits := slots(holdings, capacity, 1+rnd.IntN(5), "")
		gone, ok := Yield(holdings, fits)
		if !ok {
			if fits(map[string]bool{}) {
				t.Fatalf("%+v: there is room, and it is not found", holdings)
			}
			continue
		}
		fitted++
		if !fits(gone) {
			t.Fatalf("%+v: it does not fit without %v", holdings, gone)
		}
		for _, h := range holdings {
			staying, before := 0, false
			for _, m := range h.Members {
				if !gone[m] {
					staying++
					if before && h.InOrder {
						t.Fatalf("%+v: %s stays behind one that goes: %v", h, m, gone)
					}
					continue
				}
				without := maps.Clone(gone)
				delete(without, m)
				if fits(without) && (!before || !h.InOrder) {
					t.Fatalf("%+v: %s goes in vain: %v", holdings, m, gone)
				}
				before = true
			}
			if staying < h.Least {
				t.Fatalf("%+v: %d stay: %v", h, staying, gone)
			}
		}
	}
	if fitted < 500 {
		t.Errorf("%d of the cases fit: that shows little", fitted)
	}
}

// TestYieldsTheLeastImportantFirst checks a host with identical members, where the result is known: the least important
// ones give everything they can.
func TestYieldsTheLeastImportantFirst(t *testing.T) {
	rnd := rand.New(rand.NewPCG(3, 5))
	for range 2000 {
		capacity, need := 0, 1+rnd.IntN(8)
		var holdings []Holding
		for i := range 1 + rnd.IntN(4) {
			members := rnd.IntN(5)
			capacity += members
			key := string(rune('p' + i))
			h := Holding{Key: key, Priority: rnd.IntN(3), Least: rnd.IntN(members + 1), InOrder: rnd.IntN(2) == 0}
			if members > 0 {
				h.Members = spread(key, strings.Repeat("a", members))
			}
			holdings = append(holdings, h)
		}
		gone, ok := Yield(holdings, slots(holdings, map[string]int{"a": capacity}, need, ""))
		left, want := need, map[string]int{}
		for _, h := range slices.SortedFunc(slices.Values(holdings), func(a, b Holding) int {
			if a.Priority != b.Priority {
				return a.Priority - b.Priority
			}
			return strings.Compare(b.Key, a.Key)
		}) {
			gives := min(left, len(h.Members)-h.Least)
			want[h.Key], left = gives, left-gives
		}
		if ok != (left == 0) {
			t.Fatalf("%+v: %d fit: %t", holdings, need, ok)
		}
		for _, h := range holdings {
			gives := 0
			for _, m := range h.Members {
				if gone[m] {
					gives++
				}
			}
			if ok && gives != want[h.Key] {
				t.Fatalf("%+v: %s gives %d for %d, want %d", holdings, h.Key, gives, need, want[h.Key])
			}
		}
	}
}
