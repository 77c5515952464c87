package domain

import (
	"math"
	"strings"
	"testing"
	"time"
)

func TestVerticalScalingValidate(t *testing.T) {
	for name, test := range map[string]struct {
		change       func(v *VerticalScaling)
		path, detail string
	}{
		"nothing":           {func(v *VerticalScaling) { v.CPUs, v.MemoryMiB = nil, nil }, "vertical", "neither cpus nor memory_mib is given"},
		"too few CPUs":      {func(v *VerticalScaling) { v.CPUs.Min = 0.001 }, "vertical.cpus.min", "min is 0.001; 0.01 to 1e+09 is allowed"},
		"NaN":               {func(v *VerticalScaling) { v.CPUs.Min = math.NaN() }, "vertical.cpus.min", "min is NaN"},
		"a range of none":   {func(v *VerticalScaling) { v.CPUs.Max = 0.4 }, "vertical.cpus.max", "max is 0.4; 0.5, which is min, to 1e+09 is allowed"},
		"no memory":         {func(v *VerticalScaling) { v.MemoryMiB.Min = 0 }, "vertical.memory_mib.min", "min is 0; 1 to 1e+09 is allowed"},
		"endless memory":    {func(v *VerticalScaling) { v.MemoryMiB.Max = math.Inf(1) }, "vertical.memory_mib.max", "max is +Inf; 512, which is min, to 1e+09"},
		"a percentile of 0": {func(v *VerticalScaling) { v.Percentile = new(0.0) }, "vertical.percentile", "0 is not allowed here; more than 0, and 100 at most, is"},
		"beyond all":        {func(v *VerticalScaling) { v.Percentile = new(100.5) }, "vertical.percentile", "100.5 is not allowed here"},
		"less than is used": {func(v *VerticalScaling) { v.MarginPercent = new(-1.0) }, "vertical.margin_percent", "-1 is not allowed here; 0 to 1000 is"},
		"a long apprentice": {func(v *VerticalScaling) { v.LearnFor = new(Duration(31 * 24 * time.Hour)) }, "vertical.learn_for", "744h0m0s is not allowed here; 0s to 720h0m0s is"},
		"an unknown rule":   {func(v *VerticalScaling) { v.Apply = "evict" }, "vertical.apply", `"evict" does not say when members get what is recommended; there are ["recommend"`},
	} {
		t.Run(name, func(t *testing.T) {
			p := validPolicy()
			p.Vertical = &VerticalScaling{CPUs: &AmountBounds{0.5, 8}, MemoryMiB: &AmountBounds{512, 16384}}
			test.change(p.Vertical)
			ps := p.Validate()
			if len(ps) != 1 || ps[0].Path.String() != test.path || !strings.Contains(ps[0].Detail, test.detail) {
				t.Errorf("%v", ps)
			}
		})
	}
}
