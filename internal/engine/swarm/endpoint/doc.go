// Package endpoint is how a Docker Engine is reached: over its Unix socket or, on Windows, its named pipe, over TCP
// with TLS, or over SSH.
//
//	e, err := endpoint.Parse("ssh://ops@gpu1")       // or endpoint.Default(os.Getenv), where nothing is given
//	docker, err := e.Client(endpoint.Credentials{})  // does no I/O beyond reading the TLS files
//	defer docker.Close()
//	info, err := docker.Info(ctx)                    // the first call connects
//
// # Addresses
//
//	unix:///path/to/docker.sock
//	npipe:////./pipe/docker_engine              on Windows
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
// How hosts are reached, and verified, is told by package sshclient. A client has one SSH connection, which carries all
// HTTP connections, each forwarded to the engine's socket. It ends with the last of these: when the client is closed,
// or was idle for a while.
//
// # Errors
//
// What keeps an engine from being reached is told apart by errors.Is with [ErrNoSocket] and the errors of package
// sshclient, such as [sshclient.ErrPermissionDenied], through the Docker client's own errors, too. The text says what
// to do. After a failure to connect, a client gives the same answer for a second: the many calls of one plan wait for
// an absent host once.
package endpoint
