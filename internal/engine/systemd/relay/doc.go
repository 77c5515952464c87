// Package relay is how the provider and the controller speak with the hosts of a cluster on the engine "systemd":
// HTTP/2 over the standard input and output of a program on the host, which is run over SSH.
//
// One stream carries all calls side by side, each can be given up by itself, and pings tell that the other side is
// gone. A [Call] is a POST with JSON both ways; [WatchPath], [ReadPath] and [FilesPath] are streams.
//
//	client := relay.NewClient(dial)
//	observed, err := relay.Observe.Ask(ctx, client, "lab", "mnist")
package relay
