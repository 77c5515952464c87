package domain

// ScalingGuards keep a policy from changing the count where that would do harm, whatever the metrics ask for. Cooldown and largest step are parts
// of [ScalingBehaviour]. That nothing is changed while an apply holds the group, or a host with members is down, and that no more members are
// asked for than can be placed, holds for every policy.
type ScalingGuards struct {
	// Busy keeps members from being removed while they work.
	Busy *BusyGuard `json:"busy,omitempty"`
	// Remove says which members are removed; RemoveHighestIndex where it is empty.
	Remove RemovalOrder `json:"remove,omitempty"`
	// MemberHoursPerDay is what the role may use of a day (UTC): from then on it has its least count; 0 sets no bound.
	MemberHoursPerDay float64 `json:"member_hours_per_day,omitempty"`
}

// BusyGuard tells whether members work. Any of its signs is enough, and so is one that can't be read.
type BusyGuard struct {
	// Prometheus is a query whose value is not 0 while something works.
	Prometheus *PrometheusSource `json:"prometheus,omitempty"`
	// CPUPercent and GPUPercent are what a member that is to be removed uses at least, if it works: of the processors that its role requests, and of
	// its GPUs; nil for no such sign.
	CPUPercent *float64 `json:"cpu_percent,omitempty"`
	GPUPercent *float64 `json:"gpu_percent,omitempty"`
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
