package autoscale

import (
	"testing"
	"time"
)

func TestSay(t *testing.T) {
	tests := map[string]struct {
		parts []any
		want  string
	}{
		"nothing":         {nil, ""},
		"all there is":    {[]any{"at ", 3, " × ", 1.64, " in ", 15 * time.Second}, "at 3 × 1.64 in 15s"},
		"a long fraction": {[]any{5.0 / 3}, "1.667"},
		"a large number":  {[]any{123456.7}, "123457"},
		"a huge number":   {[]any{1e300}, "1e+300"},
		"a negative one":  {[]any{-2500.0}, "-2500"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := say(test.parts...); got != test.want {
				t.Errorf("%q, not %q", got, test.want)
			}
		})
	}
}
