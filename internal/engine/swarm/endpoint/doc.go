// Package endpoint connects to a Docker Engine: over its Unix socket or, on Windows, its named pipe, over TCP with TLS,
// or over SSH.
//
//	e, err := endpoint.Parse("ssh://ops@gpu1")       // or endpoint.Default(os.Getenv), if none is given
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
// TCP always uses TLS, at least 1.2, and the Engine's certificate is verified for the host in the address. That can't
// be switched off, and nothing falls back to less. Proxies from the environment aren't used.
//
// # SSH
//
// See package sshclient for how hosts are reached and verified. A client has one SSH connection, which carries all HTTP
// connections, each forwarded to the Engine's socket. It ends with the last of these: when the client is closed, or has
// been idle for a while.
//
// # Errors
//
// The reason why an Engine can't be reached is distinguished with errors.Is: [ErrNoSocket] and the errors of package
// sshclient, such as [sshclient.ErrPermissionDenied], even when wrapped in the Docker client's own errors. The text
// says what to do. After a failure to connect, a client returns the same error for a second, so the many calls of one
// plan wait only once for a host that is down.
package endpoint
