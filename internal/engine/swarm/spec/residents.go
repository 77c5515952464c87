package spec

// The kinds of services that are not members.
const (
	KindController = "controller"
	KindAgent      = "agent"
)

// MaxClusterName is the maximum length of a cluster's name. Services named after it must be DNS labels.
var MaxClusterName = maxLabel - max(len(ResidentName("", KindController)), len(ResidentName("", KindAgent)))

// ResidentName is the name of the service of a cluster's controller or agents.
func ResidentName(cluster, kind string) string { return "trainyard-" + cluster + "-" + kind }
