package domain

import (
	"math"
	"slices"
)

func (g ScalingGuards) validate(ps *Problems, at Path) {
	if g.Busy != nil {
		g.Busy.validate(ps, at.At("busy"))
	}
	if g.Remove != "" && !slices.Contains(RemovalOrders, g.Remove) {
		ps.Add(at.At("remove"), "Unknown order", "%q does not say which members are removed first; there are %q", g.Remove, RemovalOrders)
	}
	checkNumber(ps, at.At("member_hours_per_day"), "Invalid budget", g.MemberHoursPerDay, math.Inf(1))
}

func (g BusyGuard) validate(ps *Problems, at Path) {
	if g.Prometheus == nil && g.CPUPercent == nil && g.GPUPercent == nil {
		ps.Add(at, "No sign of work", "the guard needs prometheus, cpu_percent or gpu_percent to tell that members work, and has none")
	}
	if g.Prometheus != nil {
		g.Prometheus.validate(ps, at.At("prometheus"))
	}
	if g.CPUPercent != nil {
		checkPositive(ps, at.At("cpu_percent"), "Invalid percentage", *g.CPUPercent)
	}
	if p := g.GPUPercent; p != nil && !(*p > 0 && *p <= 100) {
		ps.Add(at.At("gpu_percent"), "Invalid percentage", "%s is not allowed here; above 0 to 100 is", number(*p))
	}
}
