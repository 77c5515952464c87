// Package sshclient is how a host is reached over SSH: one connection, over which commands run, and streams lead to
// the host's sockets and to addresses that it reaches.
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
// A client has one SSH connection. It is made for the first use, carries all streams and commands, and is made anew
// when it broke. It ends with the last use: the last stream or hold, or the last command. Nothing but the SSH server is
// needed on the other side, and no program on this one.
//
// A server allows some ten sessions a connection (MaxSessions): a command is one, a stream to a socket is none. No more
// than eight logins are under way at once, whatever the clients; a server that has shown its key gets as long again to
// let us in. A connection whose other side does not answer for half a minute is closed: what it carries fails, and the
// next use makes another.
//
// # Keys
//
// Host keys are verified strictly against known_hosts, the jump host's as well; there is no way around it.
// Keys come from the credentials; where these name none, from the agent at SSH_AUTH_SOCK and from
// ~/.ssh/id_ed25519, id_ecdsa and id_rsa. ~/.ssh/config is not read: user, port, key and jump host of a
// host that has them only there have to be given in its address and in the credentials.
//
// # Errors
//
// What keeps a host from being reached is told apart by errors.Is with [ErrHostKeyUnknown], [ErrHostKeyChanged],
// [ErrHostKeyRevoked], [ErrPermissionDenied] and [ErrTimeout]. The text says what to do, and names the host.
package sshclient
