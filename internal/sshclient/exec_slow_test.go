package sshclient

import (
	"bytes"
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/trainyard/terraform-provider-trainyard/internal/acctest/sshd"
)

// window is how much of a command's input an SSH server takes before the command reads.
const window = 2 << 20

// TestExecSlow: what was written before Close arrives, however long a command takes to read it.
func TestExecSlow(t *testing.T) {
	content := bytes.Repeat([]byte("0123456789abcdef"), window/16+1024)
	for name, before := range map[string]func(command ssh.Channel){
		"waits before it reads":    func(ssh.Channel) { <-time.After(inputPatience - time.Second) },
		"writes what nobody reads": func(command ssh.Channel) { _, _ = command.Write(make([]byte, 2*window)) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				received := make(chan []byte, 1)
				stream := executeInBubble(t, func(command ssh.Channel) {
					before(command)
					all, _ := io.ReadAll(command)
					received <- all
				})
				_, err := stream.Write(content)
				must(t, err)
				must(t, stream.Close())
				if got := <-received; !bytes.Equal(got, content) {
					t.Errorf("%d of %d bytes arrived", len(got), len(content))
				}
			})
		})
	}
}

// TestExecFull: a command that reads nothing doesn't block deadlines, and delays Close only until it counts as stuck.
func TestExecFull(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		done := make(chan struct{})
		defer close(done)
		stream := executeInBubble(t, func(ssh.Channel) { <-done })
		must(t, stream.SetWriteDeadline(time.Now().Add(time.Second)))
		if n, err := stream.Write(make([]byte, 2*window)); !errors.Is(err, os.ErrDeadlineExceeded) || n < window {
			t.Fatalf("%d bytes are written: %v", n, err)
		}
		must(t, stream.SetDeadline(time.Time{}))
		var waiting sync.WaitGroup
		start := time.Now()
		waiting.Go(func() {
			if _, err := stream.Write(make([]byte, 8<<20)); !errors.Is(err, net.ErrClosed) {
				t.Errorf("writing to what is closed says %v", err)
			}
		})
		waiting.Go(func() {
			if _, err := stream.Read(make([]byte, 1)); !errors.Is(err, net.ErrClosed) {
				t.Errorf("reading from what is closed says %v", err)
			}
		})
		waiting.Go(func() {
			synctest.Wait()
			must(t, stream.Close())
			if took := time.Since(start); took != inputPatience {
				t.Errorf("Close took %s, want %s", took, inputPatience)
			}
		})
		waiting.Wait()
	})
}

// executeInBubble starts a command on a server without a network, for a test with fake time.
func executeInBubble(t *testing.T, does func(ssh.Channel)) *Stream {
	t.Helper()
	key := sshd.Signer(t, sshd.Ed25519())
	config := &ssh.ServerConfig{NoClientAuth: true}
	config.AddHostKey(key)
	ours, theirs := connection()
	go func() {
		conn, channels, requests, err := ssh.NewServerConn(theirs, config)
		if err != nil {
			t.Error(err)
			return
		}
		go ssh.DiscardRequests(requests)
		for channel := range channels {
			command, requests, err := channel.Accept()
			if err != nil {
				t.Error(err)
				break
			}
			go func() {
				for request := range requests {
					_ = request.Reply(true, nil)
				}
			}()
			go func() {
				does(command)
				_ = command.Close()
			}()
		}
		_ = conn.Close()
	}()
	trusting := &ssh.ClientConfig{HostKeyCallback: ssh.FixedHostKey(key.PublicKey())}
	conn, channels, requests, err := ssh.NewClientConn(ours, "", trusting)
	must(t, err)
	client := ssh.NewClient(conn, channels, requests)
	session, err := client.NewSession()
	must(t, err)
	running, err := start(session, "relay")
	must(t, err)
	return newStream(running, "host", func() { _ = client.Close() })
}

// connection returns the ends of a connection in memory, each of which can write before the other one reads.
func connection() (ours, theirs net.Conn) {
	ours, first := net.Pipe()
	second, theirs := net.Pipe()
	pass := func(to, from net.Conn) {
		_, _ = io.Copy(to, from)
		_ = to.Close()
		_ = from.Close()
	}
	go pass(first, second)
	go pass(second, first)
	return ours, theirs
}
