package domain

import "testing"

func TestUpdateEqual(t *testing.T) {
	second, none := Duration(1e9), Duration(0)
	for name, c := range map[string]struct {
		a, b Update
		want bool
	}{
		"defaults written out": {Update{}, Update{Delay: &none, OnFailure: UpdatePause}, true},
		"the same delay": {
			Update{Parallelism: 2, Delay: new(second)}, Update{Parallelism: 2, Delay: new(second)}, true,
		},
		"another delay":    {Update{Delay: &second}, Update{}, false},
		"another number":   {Update{Parallelism: 1}, Update{Parallelism: 2}, false},
		"another reaction": {Update{OnFailure: UpdateContinue}, Update{}, false},
	} {
		if got := c.a.Equal(c.b); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
