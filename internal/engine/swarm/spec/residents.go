package spec

// The kinds of services that are not members.
const (
	KindController = "controller"
	KindAgent      = "agent"
)

// ResidentName is the name of the service of a cluster's controller or agents.
func ResidentName(cluster, kind string) string { return "trainyard-" + cluster + "-" + kind }
