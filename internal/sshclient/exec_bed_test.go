//go:build linux

package sshclient

import (
	"bytes"
	"io"
	"strings"
	"sync"
	"testing"

	"github.com/trainyard/terraform-provider-trainyard/internal/acctest/testbed"
)

// TestExecOnHost runs commands as connections with OpenSSH's server.
func TestExecOnHost(t *testing.T) {
	bed := testbed.NewHosts(t, testbed.HostOptions{Hosts: 1})
	host := bed.Hosts[0]
	credentials := Credentials{IdentityFiles: []string{bed.KeyFile}, KnownHosts: []string{bed.KnownHosts}}
	client := clientOf(t, "ops@"+host.SSH, credentials)
	release, err := client.Hold(t.Context())
	must(t, err)
	defer release()
	exec := func(command string) *Stream {
		t.Helper()
		stream, err := client.Exec(t.Context(), command)
		must(t, err)
		t.Cleanup(func() { _ = stream.Close() })
		return stream
	}
	content := bytes.Repeat([]byte("0123456789"), 1<<19)

	stream := exec("sudo -n cat")
	var writing sync.WaitGroup
	writing.Go(func() {
		_, err := stream.Write(content)
		if err != nil || stream.CloseWrite() != nil {
			t.Errorf("writing: %v", err)
		}
	})
	if echoed, err := io.ReadAll(stream); err != nil || !bytes.Equal(echoed, content) {
		t.Errorf("%d bytes came back (%v)", len(echoed), err)
	}
	writing.Wait()
	must(t, stream.Close())

	_, err = io.ReadAll(exec("echo oops >&2; exit 3"))
	expect(t, err, nil, host.SSH+": the command exited with status 3: oops")
	_, err = io.ReadAll(exec("kill -9 $$"))
	expect(t, err, nil, "the command exited with status 137")

	// Everything written before Close arrives, and the command ends.
	stream = exec("cat >received; echo done >>received")
	_, err = stream.Write(content)
	must(t, err)
	must(t, stream.Close())
	_, err = client.Run(t.Context(), "while ! tail -n 1 received | grep -q done; do sleep 0.1; done")
	must(t, err)
	received, err := client.Run(t.Context(), "wc -c <received")
	must(t, err)
	if got := strings.TrimSpace(string(received)); got != "5242885" {
		t.Errorf("%s bytes arrived", got)
	}

	// So it does if the command only starts to read when nothing else needs the connection any more.
	stream, err = clientOf(t, "ops@"+host.SSH, credentials).Exec(t.Context(), "sleep 4; cat >late; echo done >>late")
	must(t, err)
	_, err = stream.Write(content[:1<<20])
	must(t, err)
	must(t, stream.Close())
	_, err = client.Run(t.Context(), "while ! tail -n 1 late | grep -q done; do sleep 0.1; done")
	must(t, err)
	received, err = client.Run(t.Context(), "wc -c <late")
	must(t, err)
	if got := strings.TrimSpace(string(received)); got != "1048581" {
		t.Errorf("%s bytes arrived late", got)
	}

	counted, err := client.RunInput(t.Context(), "sudo -n wc -c", bytes.NewReader(content))
	if err != nil || strings.TrimSpace(string(counted)) != "5242880" {
		t.Errorf("%q of the input was read (%v)", counted, err)
	}

	for range 10 {
		exec("cat")
	}
	_, err = client.Exec(t.Context(), "cat")
	expect(t, err, nil, "the SSH server refused a session; check MaxSessions in sshd_config")
}
