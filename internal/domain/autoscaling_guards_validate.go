package domain

import (
	"math"
	"slices"
)

func (g ScalingGuards) validate(ps *Problems, at Path) {
	if g.Busy != nil {
		g.Busy.validate(ps, at.At("busy"))
	}
	if g.AtLeast != nil {
		if one := (g.AtLeast.Prometheus != nil) != (g.AtLeast.HTTP != nil); !one {
			ps.Add(at.At("at_least"), "Invalid source", "exactly one of prometheus and http is required")
		}
		g.AtLeast.validate(ps, at.At("at_least"))
	}
	if g.Remove != "" && !slices.Contains(RemovalOrders, g.Remove) {
		ps.Add(at.At("remove"), "Unknown order", "unknown order %q; use one of %q", g.Remove, RemovalOrders)
	}
	checkNumber(ps, at.At("member_hours_per_day"), "Invalid budget", g.MemberHoursPerDay, math.Inf(1))
}

func (g BusyGuard) validate(ps *Problems, at Path) {
	asks := g.Prometheus != nil || g.HTTP != nil
	if !asks && g.CPUPercent == nil && g.GPUPercent == nil {
		ps.Add(at, "No busy signal",
			"the guard needs at least one of prometheus, http, cpu_percent and gpu_percent to tell whether "+
				"members are busy")
	}
	g.GuardSource.validate(ps, at)
	switch {
	case g.Pauses != "" && g.Pauses != PauseIn && g.Pauses != PauseAll:
		ps.Add(at.At("pauses"), "Unknown pause", "unknown value %q; use one of %q", g.Pauses,
			[]ScalingPause{PauseIn, PauseAll})
	case g.Pauses == PauseAll && !asks:
		ps.Add(at.At("pauses"), "Pause has no effect", "pauses = %q needs a signal for all members, prometheus or "+
			"http: cpu_percent and gpu_percent are only checked for members about to be removed", PauseAll)
		ps.DecidedBy([]Path{at.At("pauses"), at.At("prometheus"), at.At("http")})
	}
	if g.CPUPercent != nil {
		checkPositive(ps, at.At("cpu_percent"), "Invalid percentage", *g.CPUPercent)
	}
	if p := g.GPUPercent; p != nil && !(*p > 0 && *p <= 100) {
		ps.Add(at.At("gpu_percent"), "Invalid percentage", "must be above 0 and at most 100, got %s", number(*p))
	}
}

func (s GuardSource) validate(ps *Problems, at Path) {
	if s.Prometheus != nil {
		s.Prometheus.validate(ps, at.At("prometheus"))
	}
	if s.HTTP != nil {
		checkURL(ps, at.At("http", "url"), s.HTTP.URL, "http://spark-master-0:8080/json/")
	}
}
