package engine

import (
	"log/slog"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
)

// Settings are how engines are reached: what the provider's configuration says about it, as a rule. They never enter a
// state.
type Settings struct {
	// StateDir is the folder of the process engine; empty for the default.
	StateDir string
	// Endpoints are further endpoints at which the cluster's engine may be reached, should its own not answer, and
	// Hosts those of its hosts that are known, with their roles and addresses.
	Endpoints []string
	Hosts     map[string]domain.Host
	// Controller tells that it is the cluster's own controller that opens the engine. It has no credentials, and
	// reaches no host but by way of what it runs beside.
	Controller bool
	// Planning tells that snapshots are for plans: hosts may be asked at once for all that plans need.
	Planning bool
	// AgentBinaries are files of Trainyard's own program for hosts, by their architecture, beside those that are found.
	AgentBinaries map[string]string
	// SSH is how to log in to hosts, for all engines.
	SSH SSHCredentials
	// Docker is for engines that speak to Docker Engines.
	Docker DockerSettings
	// Log is told of each request to a host, for engines that send several for one call; nil for none.
	Log *slog.Logger
}

// DockerSettings are how Docker Engines are reached, and what they need to run members. What is left out is taken from
// where the docker command finds it.
type DockerSettings struct {
	TLS TLSCredentials
	// Registries are the credentials of image registries by host, such as "registry.example.com:5000", or "docker.io".
	Registries map[string]RegistryCredentials
	// ControllerImage is the image, to be pulled by the hosts, that controllers and agents run from; where it is empty,
	// the engine makes one of this program.
	ControllerImage string
}

// SSHCredentials are how to log in to hosts with an ssh:// address, and to their jump host.
type SSHCredentials struct {
	// User logs in where the address names none; the user of this process where both are empty.
	User string
	// PrivateKey is a key as PEM text, IdentityFiles the files of others, offered after it in their order; ~/ is the
	// home directory.
	PrivateKey    Secret
	IdentityFiles []string
	// Passphrase decrypts the keys that are encrypted.
	Passphrase Secret
	// Agent offers the keys of the agent at SSH_AUTH_SOCK, which has to be there. Where it is false and no key is
	// given, an agent is used if there is one.
	Agent bool
	// KnownHosts are the paths of known_hosts files, and KnownHostsText the content of one. Where neither is given,
	// those of OpenSSH are used.
	KnownHosts     []string
	KnownHostsText string
	// JumpHost is the host through which all others are reached, as [user@]host[:port]; empty for none.
	JumpHost string
}

// TLSCredentials are how to authenticate to engines with a tcp:// address, and they to us.
type TLSCredentials struct {
	// CA are the certificates, as PEM text, of who may sign the engine's; the system's where it is empty.
	CA string
	// Cert and Key are the client's certificate and its key as PEM text.
	Cert string
	Key  Secret
	// CertPath is a folder with ca.pem, cert.pem and key.pem, which is used where the texts are empty; ~/ is the home
	// directory.
	CertPath string
}

// RegistryCredentials authenticate to an image registry: a user with a password, or an identity token.
type RegistryCredentials struct {
	Username string
	Password Secret
	Token    Secret
}
