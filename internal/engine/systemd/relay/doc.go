// Package relay is how the provider and the controller call the hosts of a cluster on the engine "systemd": HTTP/2 over
// the standard input and output of a program on the host, which is started over SSH.
//
// One connection carries all calls concurrently, each call can be cancelled separately, and pings detect a dead peer. A
// [Call] is a POST with JSON both ways; [WatchPath], [ReadPath] and [FilesPath] are streams.
//
//	client := relay.NewClient(dial)
//	observed, err := relay.Observe.Ask(ctx, client, "lab", "mnist")
package relay
