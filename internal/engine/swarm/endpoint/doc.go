// Package endpoint is how a Docker Engine is reached: over its Unix socket, over TCP with TLS, or over SSH.
//
//	e, err := endpoint.Parse("ssh://ops@gpu1")       // or endpoint.Default(os.Getenv), where nothing is given
//	docker, err := e.Client(endpoint.Credentials{})  // does no I/O beyond reading the TLS files
//	defer docker.Close()
//	info, err := docker.Info(ctx)                    // the first call connects
//
// # Addresses
//
//	unix:///path/to/docker.sock
//	tcp://host[:port]                           TLS, port 2376 unless given
//	ssh://[user@]host[:port][/path/to/socket]   port 22 and /var/run/docker.sock unless given
//
// # TLS
//
// TCP is always TLS, at least 1.2, with the engine's certificate verified for the address's host. There is
// no way around it, and nothing falls back to less. Proxies from the environment aren't used.
//
// # SSH
//
// A client has one SSH connection. It is made for the first call, carries all HTTP connections, each forwarded to
// the engine's socket, and is made anew when it broke. It ends with the last HTTP connection: when the client is closed, or was
// idle for a while. Nothing but the SSH server is needed on the other side, and no program on this one.
//
// Host keys are verified strictly against known_hosts, the jump host's as well; there is no way around it.
// Keys come from the credentials; where these name none, from the agent at SSH_AUTH_SOCK and from
// ~/.ssh/id_ed25519, id_ecdsa and id_rsa. ~/.ssh/config is not read: user, port, key and jump host of a
// host that has them only there have to be given in its address and in the credentials.
//
// # Errors
//
// What keeps an engine from being reached is told apart by errors.Is with [ErrHostKeyUnknown], [ErrHostKeyChanged],
// [ErrHostKeyRevoked], [ErrPermissionDenied], [ErrNoSocket] and [ErrTimeout], through the Docker client's own
// errors, too. The text says what to do. After a failure to connect, a client gives the same
// answer for a second: the many calls of one plan wait for an absent host once.
package endpoint
