package domain

// ScalingGuards keep a policy from changing the count where that would do harm, whatever the metrics ask for. Cooldown
// and largest step are parts of [ScalingBehaviour]. That nothing is changed while an apply holds the group, or a host
// with members is down, and that no more members are asked for than can be placed, holds for every policy.
type ScalingGuards struct {
	// Busy keeps members from being removed while they work.
	Busy *BusyGuard `json:"busy,omitempty"`
	// AtLeast tells a count below which no member is removed, and up to which, and Max, some are added.
	AtLeast *GuardSource `json:"at_least,omitempty"`
	// Remove says which members are removed; RemoveHighestIndex where it is empty.
	Remove RemovalOrder `json:"remove,omitempty"`
	// MemberHoursPerDay is what the role may use of a day (UTC): from then on it has its least count; 0 sets no bound.
	MemberHoursPerDay float64 `json:"member_hours_per_day,omitempty"`
}

// BusyGuard reports whether members work. Any of its signs is enough, and so is one that can't be read.
type BusyGuard struct {
	// GuardSource tells of all members at once: a value that is not 0 while something works.
	GuardSource
	// Pauses is what the sources pause: PauseIn, which keeps members from being removed, where it is empty, or
	// PauseAll.
	Pauses ScalingPause `json:"pauses,omitempty"`
	// CPUPercent and GPUPercent are what a member that is to be removed uses at least, if it works: of the processors
	// that its role requests, and of its GPUs; nil for no such sign.
	CPUPercent *float64 `json:"cpu_percent,omitempty"`
	GPUPercent *float64 `json:"gpu_percent,omitempty"`
}

// GuardSource is something outside that tells a guard a number.
type GuardSource struct {
	// Prometheus is a query, and HTTP a number in the JSON of an address, or true or false, which are 1 and 0.
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
	// Name is that of the guard.
	Name   string
	Source ScalingSource
	// What says in words what is asked.
	What string
}

// Questions are what the guards ask of sources outside, in an order of their own.
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

func (s GuardSource) questions(query, page string) []GuardQuestion {
	var asked []GuardQuestion
	if s.Prometheus != nil {
		asked = append(asked, GuardQuestion{query, ScalingSource{Prometheus: s.Prometheus}, s.Prometheus.Query})
	}
	if s.HTTP != nil {
		what := s.HTTP.Path
		if what == "" {
			what = "the answer"
		}
		asked = append(asked, GuardQuestion{page, ScalingSource{Queue: &QueueSource{HTTP: s.HTTP}}, what + " of " + s.HTTP.URL})
	}
	return asked
}

// RemovalOrder says which members of a role are removed first.
type RemovalOrder string

// The orders of removal.
const (
	// RemoveHighestIndex is the only one for members with identity.
	RemoveHighestIndex RemovalOrder = "highest_index"
	// RemoveLeastBusy is by the processors that they use.
	RemoveLeastBusy RemovalOrder = "least_busy"
	// RemoveMostLoadedHost is by the processors that are used of their hosts, in percent.
	RemoveMostLoadedHost RemovalOrder = "most_loaded_host"
)

// RemovalOrders lists what a policy may name.
var RemovalOrders = []RemovalOrder{RemoveHighestIndex, RemoveLeastBusy, RemoveMostLoadedHost}
