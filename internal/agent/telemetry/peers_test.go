package telemetry

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/trainyard/terraform-provider-trainyard/internal/bounded"
)

func mkdir(t *testing.T, folder string) {
	t.Helper()
	if err := os.MkdirAll(folder, 0o700); err != nil {
		t.Fatal(err)
	}
}

// identity makes an identity, and returns its file.
func newIdentity(t *testing.T) string {
	t.Helper()
	identity, err := NewIdentity()
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "agent.pem")
	if err := os.WriteFile(file, identity, 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// TestPeers: agents answer those of their cluster, and nobody else; who does not answer is told of, and delays nobody for long.
func TestPeers(t *testing.T) {
	ours, theirs := newIdentity(t), newIdentity(t)
	listener, err := ListenToPeers("127.0.0.1:0", ours)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- bounded.Serve(ctx, listener, newResident(t).Handler()) }()
	defer func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}()
	_, text, _ := net.SplitHostPort(listener.Addr().String())
	port, _ := strconv.Atoi(text)
	ask := func(identity string) Reports {
		t.Helper()
		settings, err := readIdentity(identity)
		if err != nil {
			t.Fatal(err)
		}
		return askAll(t.Context(), []string{"127.0.0.1", "127.0.0.2"}, port, settings, Query{Window: time.Minute})
	}

	if found := ask(ours); len(found.Reports) != 1 || found.Reports["node1"].Samples == 0 || len(found.Failures) != 1 || !strings.Contains(found.Failures["127.0.0.2"], "refused") {
		t.Errorf("the cluster's own agents told %+v", found)
	}
	if found := ask(theirs); len(found.Reports) != 0 || !strings.Contains(found.Failures["127.0.0.1"], "certificate") {
		t.Errorf("agents of another cluster were told %+v", found)
	}
	// Who knows the name alone can't ask either.
	stranger := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}} //nolint:gosec // that is the point
	if response, err := stranger.Get("https://" + listener.Addr().String() + reportPath); err == nil {
		_ = response.Body.Close()
		t.Errorf("a stranger was answered %s", response.Status)
	}
}

func TestIdentityThatIsNone(t *testing.T) {
	file := filepath.Join(t.TempDir(), "agent.pem")
	if _, err := ListenToPeers("127.0.0.1:0", file); err == nil {
		t.Error("an agent without an identity listens")
	}
	if err := os.WriteFile(file, []byte("none"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := ListenToPeers("127.0.0.1:0", file); err == nil || !strings.Contains(err.Error(), "can't be read") {
		t.Errorf("an identity that is none: %v", err)
	}
}

func FuzzReadReports(f *testing.F) {
	f.Add([]byte(`{"reports":{"node1":{"host":{"cpus":{"last":1}},"samples":3}},"failures":{"10.0.0.7":"refused"}}`))
	f.Add([]byte(`{"reports":[]}`))
	f.Add([]byte(`{`))
	f.Fuzz(func(t *testing.T, text []byte) {
		if _, err := ReadReports(text); err != nil && len(err.Error()) > 4096 {
			t.Errorf("an error of %d bytes", len(err.Error()))
		}
	})
}
