package qmodel

// Feature is one number of the state that a model is asked about.
type Feature struct {
	Name string
	// Unit is its unit, and Doc describes it.
	Unit, Doc string
	// Observed means that it is computed from another metric of the policy.
	Observed bool
}

// Indexes of the features in [Features].
const (
	Load = iota
	LoadSlope1m
	LoadSlope5m
	CPU
	LagGrowth
	P99
	Count
	Ready
	Starting
	Reassigning
	SinceChange
	Skew
	// NumFeatures is the number of features.
	NumFeatures
)

// Features are all features that a model can have, in the order of [State].
var Features = [NumFeatures]Feature{
	Load: {
		Name: "load", Unit: "share of a member's capacity, 0 to 4",
		Doc: "load of a ready member, by the metric that has the algorithm",
	},
	LoadSlope1m: {
		Name: "load_slope_1m", Unit: "share of the ready members' capacity a minute, −4 to 4",
		Doc: "change of the load of all members over the last minute",
	},
	LoadSlope5m: {
		Name: "load_slope_5m", Unit: "share of the ready members' capacity a minute, −4 to 4",
		Doc: "change of the load of all members over the last five minutes",
	},
	CPU: {
		Name: "cpu", Unit: "share, 0 to 4", Doc: "processors in use; the metric is in percent", Observed: true,
	},
	LagGrowth: {
		Name: "lag_growth", Unit: "share of the ready members' capacity, −4 to 4",
		Doc: "growth of the lag a second, over the last minute; the metric is the lag", Observed: true,
	},
	P99: {
		Name: "p99", Unit: "share of `latency_bound`, 0 to 10", Doc: "99th percentile of the latency", Observed: true,
	},
	Count:    {Name: "count", Unit: "share of `max`, 0 to 1", Doc: "members that the role is to have"},
	Ready:    {Name: "ready", Unit: "share of the count, 0 to 1", Doc: "members that are ready"},
	Starting: {Name: "starting", Unit: "0 or 1", Doc: "1 while fewer are ready than there are to be"},
	Reassigning: {
		Name: "reassigning", Unit: "0 or 1",
		Doc: "1 while data moves between members: the metric is above 0, or a hook is at work", Observed: true,
	},
	SinceChange: {
		Name: "since_change", Unit: "intervals of the policy, 0 to 60",
		Doc: "time since the count was changed; 60 where it never was",
	},
	Skew: {
		Name: "skew", Unit: "the metric's own, 0 to 10",
		Doc:      "how unevenly the load is spread, such as the largest share of a member by the mean one, less 1",
		Observed: true,
	},
}

// State is a value for each of [Features].
type State [NumFeatures]float64

// FeatureNames returns the names of [Features], in their order.
func FeatureNames() []string {
	names := make([]string, 0, NumFeatures)
	for _, f := range Features {
		names = append(names, f.Name)
	}
	return names
}

// place returns the index of a feature in [Features].
func place(name string) (int, bool) {
	for i, f := range Features {
		if f.Name == name {
			return i, true
		}
	}
	return 0, false
}
