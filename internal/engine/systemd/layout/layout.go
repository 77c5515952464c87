// Package layout holds the name of the engine "systemd", and the paths of its files on a host.
package layout

const (
	// Engine is the engine's name in a configuration.
	Engine = "systemd"
	// Home is the folder for everything of ours on a host, except unit files.
	Home = "/var/lib/trainyard"
	// Clusters is the folder with the state directories of the clusters that the host is in.
	Clusters = Home + "/clusters"
	// Programs is the folder with the programs installed on the host.
	Programs = Home + "/bin"
	// ProgramName is the name of the program that hosts run.
	ProgramName = "trainyard"
	// KeyFile is, in a cluster's state directory, the private key with which its controller logs in to the other hosts.
	KeyFile = "id_ed25519"
	// PeersFile is, in the same folder, the list of those hosts with their logins and keys.
	PeersFile = "peers.json"
	// Units is the folder of the unit files.
	Units = "/etc/systemd/system"
)

// SupervisorUnit is the name of the unit that runs the supervisor of a cluster.
func SupervisorUnit(cluster string) string { return "trainyard@" + cluster + ".service" }

// Program returns the path of the installed program with this digest, and Agent that of an agent.
func Program(digest string) string { return Programs + "/" + digest + "/terraform-provider-trainyard" }
