// Package sshclient reaches a host over SSH: a single connection, over which commands run, and which forwards streams
// to the host's sockets and to addresses that the host can reach.
//
//	host, err := sshclient.ParseHost("ops@gpu1:2222")
//	client, err := sshclient.New(host, sshclient.Credentials{}, 0)  // does no I/O
//	release, err := client.Hold(ctx)                                // connects, and keeps the connection
//	defer release()
//	output, err := client.Run(ctx, "nproc")
//	output, err = client.RunInput(ctx, "sha256sum", file)
//	relay, err := client.Exec(ctx, "relay")                         // a net.Conn
//	conn, err := client.Dial(ctx, "unix", "/run/docker.sock")
//
// # Connections
//
// A client has one SSH connection. It is opened at the first use, carries all streams and commands, and is opened again
// after it broke. It is closed with the last use: the last stream or hold, or the last command. The other side needs
// nothing but its SSH server, and this side needs no program.
//
// A server allows about ten sessions per connection (MaxSessions): a command is a session, a stream to a socket is not.
// No more than eight logins are in progress at once, over all clients; a server that has presented its host key gets
// the same time again to complete the login. If the other side does not answer for half a minute, the connection is
// closed: everything on it fails, and the next use opens another.
//
// # Keys
//
// Host keys are strictly verified against known_hosts, including the jump host's; that can't be switched off. Keys come
// from the credentials, or if these name none, from the agent at SSH_AUTH_SOCK and from ~/.ssh/id_ed25519, id_ecdsa and
// id_rsa. ~/.ssh/config is not read: user, port, key and jump host of a host that has them only there must be given in
// its address and in the credentials.
//
// # Errors
//
// The reason why a host can't be reached is distinguished with errors.Is: [ErrHostKeyUnknown], [ErrHostKeyChanged],
// [ErrHostKeyRevoked], [ErrPermissionDenied] and [ErrTimeout]. The text says what to do, and names the host.
package sshclient
