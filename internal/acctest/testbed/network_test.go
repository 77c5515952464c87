//go:build linux

package testbed

import (
	"errors"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/docker/docker/api/types/image"
	"github.com/docker/docker/client"
	"github.com/vishvananda/netlink"
)

func TestTLS(t *testing.T) {
	t.Parallel()
	bed := New(t, Options{Nodes: 2, Managers: 1, TLS: true})
	for _, node := range bed.Nodes {
		files := client.WithTLSClientConfig(bed.Certificates+"/ca.pem", bed.Certificates+"/cert.pem",
			bed.Certificates+"/key.pem")
		verified, err := client.NewClientWithOpts(client.WithHost(node.TLSHost()), files,
			client.WithAPIVersionNegotiation())
		if err != nil {
			t.Fatal(err)
		}
		defer verified.Close()
		info, err := verified.Info(limited(t))
		if err != nil {
			t.Fatal(err)
		}
		if info.Name != node.Name {
			t.Errorf("at %s is the engine of %s, want that of %s", node.TLSHost(), info.Name, node.Name)
		}

		stranger, err := client.NewClientWithOpts(client.WithHost(node.TLSHost()),
			client.WithTLSClientConfig(bed.Certificates+"/ca.pem", "", ""))
		if err != nil {
			t.Fatal(err)
		}
		defer stranger.Close()
		if _, err := stranger.Info(limited(t)); err == nil {
			t.Errorf("%s answers a client without a certificate", node.TLSHost())
		}
	}
	if host := Shared(t, three).Nodes[0].TLSHost(); host != "" {
		t.Errorf("a bed without TLS has the TLS endpoint %s", host)
	}
}

// TestListen: an engine pulls from a registry that the test serves, and gets no further than its first request.
func TestListen(t *testing.T) {
	bed := Shared(t, three)
	listener, err := bed.Listen(5000)
	if err != nil {
		t.Fatal(err)
	}
	asked := make(chan string, 100)
	server := &http.Server{ReadHeaderTimeout: time.Minute,
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			asked <- r.URL.Path
			http.NotFound(w, r)
		})}
	done := make(chan error, 1)
	go func() { done <- server.Serve(listener) }()
	defer func() {
		if err := server.Close(); err != nil {
			t.Error(err)
		}
		if err := <-done; !errors.Is(err, http.ErrServerClosed) {
			t.Error(err)
		}
	}()
	pull, err := bed.Nodes[2].Client().ImagePull(limited(t), bed.Gateway().String()+":5000/some/image:1",
		image.PullOptions{})
	if err == nil {
		t.Fatalf("a registry without images gave one: %v", pull.Close())
	}
	select {
	case path := <-asked:
		if !strings.HasPrefix(path, "/v2/") {
			t.Errorf("the registry was asked for %s first", path)
		}
	default:
		t.Errorf("the engine asked no registry: %v", err)
	}
}

// TestUnplug: the kernel removes the cable of a crashed node by itself, sometimes just before a bed does.
func TestUnplug(t *testing.T) {
	SkipIfShort(t)
	n, err := newNetwork()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := n.close(); err != nil {
			t.Error(err)
		}
	})
	for range 50 {
		if err := n.links.LinkAdd(
			&netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: "node1"}, PeerName: "eth0"},
		); err != nil {
			t.Fatal(err)
		}
		var all sync.WaitGroup
		for range 4 {
			all.Go(func() {
				if err := n.unplug("node1"); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
	}
}
