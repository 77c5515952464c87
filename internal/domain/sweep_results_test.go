package domain

import "testing"

func TestIsLocal(t *testing.T) {
	for at, want := range map[string]bool{
		"results": true, "a/../b": true, ".": true, "./a/": true, "..a": true, `a\b`: true, "con": true, "a:b": true,
		"": false, "..": false, "../a": false, "a/../../b": false, "/a": false, "/": false,
	} {
		if got := IsLocal(at); got != want {
			t.Errorf("%q is local: %t, want %t", at, got, want)
		}
	}
}
