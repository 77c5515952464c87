// Package layout holds the name of the engine "systemd", and the paths of its files on a host.
package layout

const (
	// Engine is the engine's name in a configuration.
	Engine = "systemd"
	// Home is the folder of all that is ours on a host, but for unit files.
	Home = "/var/lib/trainyard"
	// Clusters is the folder with the state directories of the clusters that the host is in.
	Clusters = Home + "/clusters"
	// Programs is the folder with the programs that were brought to the host.
	Programs = Home + "/bin"
	// ProgramName is what the program that hosts run is called there.
	ProgramName = "trainyard"
	// KeyFile is in the state directory of a cluster, and is the key that its controller logs in to the other hosts
	// with.
	KeyFile = "id_ed25519"
	// PeersFile is beside it, and says where that is.
	PeersFile = "peers.json"
	// Units is the folder of the unit files.
	Units = "/etc/systemd/system"
)

// SupervisorUnit is the name of the unit that runs the supervisor of a cluster.
func SupervisorUnit(cluster string) string { return "trainyard@" + cluster + ".service" }

// Program returns the path of the installed program with a digest, and Agent that of its agent.
func Program(digest string) string { return Programs + "/" + digest + "/terraform-provider-trainyard" }
