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
		"nothing": {
			func(v *VerticalScaling) { v.CPUs, v.MemoryMiB = nil, nil }, "vertical",
			"set the bounds of cpus, memory_mib or both",
		},
		"too few CPUs": {
			func(v *VerticalScaling) { v.CPUs.Min = 0.001 }, "vertical.cpus.min",
			"must be between 0.01 and 1e+09, got 0.001",
		},
		"NaN": {
			func(v *VerticalScaling) { v.CPUs.Min = math.NaN() }, "vertical.cpus.min",
			"must be between 0.01 and 1e+09, got NaN",
		},
		"a range of none": {
			func(v *VerticalScaling) { v.CPUs.Max = 0.4 }, "vertical.cpus.max",
			"must be between 0.5 (min) and 1e+09, got 0.4",
		},
		"no memory": {
			func(v *VerticalScaling) { v.MemoryMiB.Min = 0 }, "vertical.memory_mib.min",
			"must be between 1 and 1e+09, got 0",
		},
		"endless memory": {
			func(v *VerticalScaling) { v.MemoryMiB.Max = math.Inf(1) }, "vertical.memory_mib.max",
			"must be between 512 (min) and 1e+09, got +Inf",
		},
		"a percentile of 0": {
			func(v *VerticalScaling) { v.Percentile = new(0.0) }, "vertical.percentile",
			"must be above 0 and at most 100, got 0",
		},
		"beyond all": {
			func(v *VerticalScaling) { v.Percentile = new(100.5) }, "vertical.percentile", "got 100.5",
		},
		"less than is used": {
			func(v *VerticalScaling) { v.MarginPercent = new(-1.0) }, "vertical.margin_percent",
			"must be between 0 and 1000, got -1",
		},
		"a long apprentice": {
			func(v *VerticalScaling) { v.LearnFor = new(Duration(31 * 24 * time.Hour)) }, "vertical.learn_for",
			"must be between 0s and 720h0m0s, got 744h0m0s",
		},
		"an unknown rule": {
			func(v *VerticalScaling) { v.Apply = "evict" }, "vertical.apply",
			`unknown rule "evict"; use one of ["recommend"`,
		},
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
