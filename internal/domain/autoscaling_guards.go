package domain

// ScalingGuards keep a policy from changing the count where that would do harm, whatever the metrics ask for; cooldown
// and maximum step are in [ScalingBehaviour]. Every policy also holds the count while an apply holds the group or a
// host with members is down, and never asks for more members than can be placed.
type ScalingGuards struct {
	// Busy prevents members from being removed while they work.
	Busy *BusyGuard `json:"busy,omitempty"`
	// AtLeast gives a floor for the count: no member is removed below it, and members are added up to it, but not
	// beyond Max.
	AtLeast *GuardSource `json:"at_least,omitempty"`
	// Remove says which members are removed first; empty means RemoveHighestIndex.
	Remove RemovalOrder `json:"remove,omitempty"`
	// MemberHoursPerDay is the role's budget of member-hours per day (UTC). Once it is used up, the role runs at its
	// minimum; 0 means no limit.
	MemberHoursPerDay float64 `json:"member_hours_per_day,omitempty"`
}

// BusyGuard decides whether members are working. Any of its signs is enough, and a sign that can't be read counts as
// one.
type BusyGuard struct {
	// GuardSource covers all members at once: a value other than 0 means that something is working.
	GuardSource
	// Pauses is what the sources pause: PauseAll, or PauseIn, which prevents removals and is the default.
	Pauses ScalingPause `json:"pauses,omitempty"`
	// CPUPercent and GPUPercent are the usage from which a member that is about to be removed counts as working: of the
	// CPUs that its role requests, and of its GPUs. nil disables the check.
	CPUPercent *float64 `json:"cpu_percent,omitempty"`
	GPUPercent *float64 `json:"gpu_percent,omitempty"`
}

// GuardSource is an external source that gives a guard a number.
type GuardSource struct {
	// Prometheus is a query. HTTP is a number in the JSON at a URL; true and false are read as 1 and 0.
	Prometheus *PrometheusSource `json:"prometheus,omitempty"`
	HTTP       *HTTPQueue        `json:"http,omitempty"`
}

// The names of guards that ask a source.
const (
	GuardBusyPrometheus = "busy.prometheus"
	GuardBusyHTTP       = "busy.http"
	GuardAtLeast        = "at_least"
)

// GuardQuestion is what a guard asks.
type GuardQuestion struct {
	// Name is the guard's name.
	Name   string
	Source ScalingSource
	// What describes the question in words.
	What string
}

// Questions returns what the guards ask external sources, in a fixed order.
func (g ScalingGuards) Questions() []GuardQuestion {
	var asked []GuardQuestion
	if g.Busy != nil {
		asked = append(asked, g.Busy.questions(GuardBusyPrometheus, GuardBusyHTTP)...)
	}
	if g.AtLeast != nil {
		asked = append(asked, g.AtLeast.questions(GuardAtLeast, GuardAtLeast)...)
	}
	return asked
}

func (s GuardSource) questions(query, endpoint string) []GuardQuestion {
	var asked []GuardQuestion
	if s.Prometheus != nil {
		asked = append(asked, GuardQuestion{query, ScalingSource{Prometheus: s.Prometheus}, s.Prometheus.Query})
	}
	if s.HTTP != nil {
		what := s.HTTP.Path
		if what == "" {
			what = "the answer"
		}
		asked = append(asked,
			GuardQuestion{endpoint, ScalingSource{Queue: &QueueSource{HTTP: s.HTTP}}, what + " of " + s.HTTP.URL})
	}
	return asked
}

// RemovalOrder says which members of a role are removed first.
type RemovalOrder string

// The orders of removal.
const (
	// RemoveHighestIndex is the only order for members with identity.
	RemoveHighestIndex RemovalOrder = "highest_index"
	// RemoveLeastBusy removes the members that use the fewest CPUs first.
	RemoveLeastBusy RemovalOrder = "least_busy"
	// RemoveMostLoadedHost removes members from the hosts with the highest CPU usage, in percent, first.
	RemoveMostLoadedHost RemovalOrder = "most_loaded_host"
)

// RemovalOrders lists the valid values.
var RemovalOrders = []RemovalOrder{RemoveHighestIndex, RemoveLeastBusy, RemoveMostLoadedHost}
