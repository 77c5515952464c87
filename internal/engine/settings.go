package engine

import (
	"log/slog"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
)

// Settings configure how engines are reached, usually from the provider's configuration. They never enter the state.
type Settings struct {
	// StateDir is the folder of the process engine; empty for the default.
	StateDir string
	// Endpoints are alternatives at which the cluster's engine may be reached if its own does not answer, and Hosts
	// those of its hosts that are known, with their roles and addresses.
	Endpoints []string
	Hosts     map[string]domain.Host
	// Controller is set if the cluster's own controller opens the engine. It has no credentials, and reaches hosts only
	// through the engine that it runs on.
	Controller bool
	// Planning is set if snapshots are for plans: hosts may be asked once for everything that a plan needs.
	Planning bool
	// AgentBinaries are files of Trainyard's own program for hosts, by architecture, in addition to those that are
	// found.
	AgentBinaries map[string]string
	// SSH is how to log in to hosts, for all engines.
	SSH SSHCredentials
	// Docker is for engines that use Docker Engines.
	Docker DockerSettings
	// Log receives each request to a host, for engines that send several per call; nil for none.
	Log *slog.Logger
}

// DockerSettings are how Docker Engines are reached, and what they need to run members. Omitted settings are taken from
// where the docker command finds them.
type DockerSettings struct {
	TLS TLSCredentials
	// Registries are the credentials of image registries by host, such as "registry.example.com:5000", or "docker.io".
	Registries map[string]RegistryCredentials
	// ControllerImage is the image that hosts pull to run controllers and agents from; if empty, the engine builds one
	// from this program.
	ControllerImage string
}

// SSHCredentials are how to log in to hosts with an ssh:// address, and to their jump host.
type SSHCredentials struct {
	// User is the login user for addresses that name none; if empty, the user of this process.
	User string
	// PrivateKey is a key as PEM text, and IdentityFiles are files with further keys, offered after it in their order;
	// ~/ is the home directory.
	PrivateKey    Secret
	IdentityFiles []string
	// Passphrase decrypts the encrypted keys.
	Passphrase Secret
	// Agent offers the keys of the agent at SSH_AUTH_SOCK, which has to exist. If it is false and no key is given, an
	// agent is used if there is one.
	Agent bool
	// KnownHosts are the paths of known_hosts files, and KnownHostsText the content of one. Without either, those of
	// OpenSSH are used.
	KnownHosts     []string
	KnownHostsText string
	// JumpHost is the host through which all others are reached, as [user@]host[:port]; empty for none.
	JumpHost string
}

// TLSCredentials authenticate this client and engines with a tcp:// address to each other.
type TLSCredentials struct {
	// CA are the certificates, as PEM text, of the authorities that may sign the engine's; if empty, the system's.
	CA string
	// Cert and Key are the client's certificate and its key as PEM text.
	Cert string
	Key  Secret
	// CertPath is a folder with ca.pem, cert.pem and key.pem, used if the texts are empty; ~/ is the home directory.
	CertPath string
}

// RegistryCredentials authenticate to an image registry: a user with a password, or an identity token.
type RegistryCredentials struct {
	Username string
	Password Secret
	Token    Secret
}
