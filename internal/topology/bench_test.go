package topology

import (
	"fmt"
	"testing"
)

var sizes = []int{10, 100, 1000}

// BenchmarkHash lays a group out and hashes every member, as each plan does.
func BenchmarkHash(b *testing.B) {
	for _, n := range sizes {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			g := group("tensorflow", map[string]int{"ps": 2, "worker": n - 2})
			placed := place(g)
			for b.Loop() {
				l := NewLayout(g, placed.members, placed.filesDir)
				for i := range l.members {
					l.Hash(i)
				}
			}
		})
	}
}

// BenchmarkSpec lays a group out and renders every member, as an apply of a new group does.
func BenchmarkSpec(b *testing.B) {
	for _, n := range sizes {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			g := group("tensorflow", map[string]int{"ps": 2, "worker": n - 2})
			g.Args = []string{`--first={{ address "ps" 0 }}`, "--index={{ .Index }}"}
			placed := place(g)
			for b.Loop() {
				l := NewLayout(g, placed.members, placed.filesDir)
				for i := range l.members {
					if _, err := l.Spec(i); err != nil {
						b.Fatal(err)
					}
				}
			}
		})
	}
}

// BenchmarkValidate validates a group with templates, which are rendered for every member.
func BenchmarkValidate(b *testing.B) {
	for _, n := range sizes {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			g := group("tensorflow", map[string]int{"ps": 2, "worker": n - 2})
			g.Args = []string{`--first={{ address "ps" 0 }}`, "--index={{ .Index }}"}
			for b.Loop() {
				if problems := Validate(g); len(problems) > 0 {
					b.Fatal(problems)
				}
			}
		})
	}
}
