// Package topology turns a group into its members: their names, the environment their framework expects, the templates
// in their user's strings, and the hash by which a changed specification is recognised.
//
// # Frameworks
//
// A framework is one file that describes which roles it knows and what their members find in their environment, and one
// line in the table of framework.go. Whatever the framework, each member gets
//
//	TRAINYARD_CLUSTER, _GROUP, _ROLE, _INDEX, _MEMBER   who it is
//	TRAINYARD_HOST, _ADDRESS, _PORT                     where it is: the host's name, "host:port", the port alone
//	TRAINYARD_CLUSTER_SPEC                              JSON, role → list of "host:port"
//	CUDA_VISIBLE_DEVICES                                -1: it has no GPU
//
// The user's own environment takes precedence over the framework's, and over CUDA_VISIBLE_DEVICES. Variables that start
// with TRAINYARD_ are never overridden.
//
// # Templates
//
// In a role's command, args and the values of its env, a string that contains "{{" is a template of package
// text/template. It has the fields .Index .Name .Role .Group .Cluster .Host .Address .Port of the member, and the
// functions
//
//	address "ps" 0       "host:port" of a member of a role
//	addresses "worker"   those of all members of a role, comma-separated
//	replicas "worker"    the number of members of a role
//	hostname ADDRESS     the host of "host:port"
//	port ADDRESS         the port of "host:port"
//
// Two literal opening braces are written {{ "{{" }}.
//
// No other member may depend on the addresses of members of interchangeable roles (the workers of Spark and Ray): these
// functions don't know them, and no environment contains them, so that growing such a role restarts no member.
package topology
