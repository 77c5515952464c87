package endpoint

import (
	"testing"

	"github.com/trainyard/terraform-provider-trainyard/internal/acctest/sshd"
)

// BenchmarkSSHCall measures one call to an engine over SSH on this machine: over the client's open connection, and over
// a new one.
func BenchmarkSSHCall(b *testing.B) {
	sshd.Isolate(b)
	socket := startEngine(b)
	server := sshd.Start(b, sshd.Options{})
	address, credentials := "ssh://"+server.Addr+socket, Credentials{SSH: server.Credentials(b)}
	b.Run("warm", func(b *testing.B) {
		docker := open(b, address, credentials)
		must(b, call(b, docker))
		for b.Loop() {
			must(b, call(b, docker))
		}
	})
	b.Run("fresh", func(b *testing.B) {
		for b.Loop() {
			docker := open(b, address, credentials)
			must(b, call(b, docker))
			must(b, docker.Close())
			<-server.Ended
		}
	})
}
