//go:build linux

package telemetry

import (
	"context"
	"crypto/tls"
	"fmt"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
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

// newKeys returns a number of new keys.
func newKeys(t *testing.T, number int) (keys [][]byte) {
	t.Helper()
	for range number {
		key, err := NewKey()
		if err != nil {
			t.Fatal(err)
		}
		keys = append(keys, key)
	}
	return keys
}

// keyFolder returns a folder with keys.
func keyFolder(t *testing.T, keys ...[]byte) string {
	t.Helper()
	folder := t.TempDir()
	for i, key := range keys {
		if err := os.WriteFile(filepath.Join(folder, fmt.Sprintf("%d.pem", i)), key, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return folder
}

// answerPeers makes a handler answer peers with one of the keys in a folder, and returns its port.
func answerPeers(t *testing.T, folder string, handler http.Handler) (port int) {
	t.Helper()
	listener, err := ListenToPeers("127.0.0.1:0", folder)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- bounded.Serve(ctx, listener, handler) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return int(netip.MustParseAddrPort(listener.Addr().String()).Port())
}

// askBy queries peers with the keys in a folder.
func askBy(t *testing.T, folder string, port int, peers ...Peer) Reports {
	t.Helper()
	keys, err := readKeys(folder)
	if err != nil {
		t.Fatal(err)
	}
	for tries := 1; ; tries++ {
		begun := time.Now()
		found := askAll(t.Context(), peers, port, keys, Query{Window: time.Minute})
		// On a busy machine even who answers at once may be late.
		if time.Since(begun) < peerPatience || tries == 10 {
			return found
		}
	}
}

// TestPeers: agents answer those of their cluster, and nobody else. One that doesn't answer is reported.
func TestPeers(t *testing.T) {
	keys := newKeys(t, 2)
	ours, theirs := keyFolder(t, keys[0]), keyFolder(t, keys[1])
	port := answerPeers(t, ours, newResident(t).Handler())
	all := []Peer{{"node1", "127.0.0.1"}, {"node2", "127.0.0.2"}}

	found := askBy(t, ours, port, all...)
	if len(found.Reports) != 1 || found.Reports["node1"].Samples == 0 {
		t.Errorf("the cluster's own agents reported %+v", found)
	}
	if len(found.Failures) != 1 || !strings.Contains(found.Failures["node2"], "refused") {
		t.Errorf("failures are %v", found.Failures)
	}
	found = askBy(t, theirs, port, all...)
	if len(found.Reports) != 0 || !strings.Contains(found.Failures["node1"], "certificate") {
		t.Errorf("agents of another cluster received %+v", found)
	}
	// Knowing only the name is not enough either.
	stranger := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}} //nolint:gosec // that is the point
	if response, err := stranger.Get(fmt.Sprintf("https://127.0.0.1:%d%s", port, reportPath)); err == nil {
		_ = response.Body.Close()
		t.Errorf("a stranger was answered %s", response.Status)
	}
}

// TestPeerClaimsAnotherNode: a report that names another node than that of the agent's address is discarded, and the
// error names the agent.
func TestPeerClaimsAnotherNode(t *testing.T) {
	folder := keyFolder(t, newKeys(t, 1)...)
	port := answerPeers(t, folder, newResident(t).Handler()) // it reports to be node1
	for _, peers := range [][]Peer{
		{{"node1", "127.0.0.2"}, {"node2", "127.0.0.1"}},
		{{"node2", "127.0.0.1"}, {"node1", "127.0.0.2"}},
	} {
		found := askBy(t, folder, port, peers...)
		const want = `the agent at 127.0.0.1, of node node2, claims to be node "node1"`
		if why := found.Failures["node2"]; len(found.Reports) != 0 || why != want {
			t.Errorf("there are reports %+v; node2 failed: %s, want %s", found.Reports, why, want)
		}
	}
}

// TestNewKeyIsHandedOut: agents with the old key and those with the new one can talk to those that have both. With only
// the new one, the old one is refused.
func TestNewKeyIsHandedOut(t *testing.T) {
	keys := newKeys(t, 2)
	old, both, latest := keyFolder(t, keys[0]), keyFolder(t, keys...), keyFolder(t, keys[1])
	for name, test := range map[string]struct {
		client, server string
		refused        bool
	}{
		"nobody has the new one":      {client: old, server: old},
		"the client has it":           {client: both, server: old},
		"the server has it":           {client: old, server: both},
		"both have it":                {client: both, server: both},
		"the client has only it":      {client: latest, server: both},
		"the server has only it":      {client: both, server: latest},
		"all have only it":            {client: latest, server: latest},
		"in another order":            {client: both, server: keyFolder(t, keys[1], keys[0])},
		"the client has only the old": {client: old, server: latest, refused: true},
		"the server has only the old": {client: latest, server: old, refused: true},
	} {
		t.Run(name, func(t *testing.T) {
			port := answerPeers(t, test.server, newResident(t).Handler())
			found := askBy(t, test.client, port, Peer{"node1", "127.0.0.1"})
			if _, answered := found.Reports["node1"]; answered == test.refused {
				t.Errorf("it answered: %t; %v", answered, found.Failures)
			}
		})
	}
}

func TestKeysThatAreNone(t *testing.T) {
	folder := t.TempDir()
	if _, err := ListenToPeers("127.0.0.1:0", folder); err == nil || !strings.Contains(err.Error(), "has no key") {
		t.Errorf("an agent without a key listens: %v", err)
	}
	folder = keyFolder(t, newKeys(t, 1)[0], []byte("none"))
	if _, err := ListenToPeers("127.0.0.1:0", folder); err == nil ||
		!strings.Contains(err.Error(), "reading a key of the cluster's agents") {
		t.Errorf("a key that is none: %v", err)
	}
}

func TestParsePeer(t *testing.T) {
	want := Peer{"9q3k0wu5bb", "10.0.0.7"}
	if got, err := ParsePeer(want.String()); err != nil || got != want {
		t.Errorf("%s is read as %+v, %v", want, got, err)
	}
	for _, text := range []string{"", "10.0.0.7", "=10.0.0.7", "9q3k0wu5bb="} {
		if got, err := ParsePeer(text); err == nil {
			t.Errorf("%q is read as %+v", text, got)
		}
	}
}

func FuzzReadReports(f *testing.F) {
	f.Add([]byte(`{"reports":{"node1":{"host":{"cpus":{"last":1}},"samples":3}},"failures":{"node2":"refused"}}`))
	f.Add([]byte(`{"reports":[]}`))
	f.Add([]byte(`{`))
	f.Fuzz(func(t *testing.T, text []byte) {
		if _, err := ReadReports(text); err != nil && len(err.Error()) > 4096 {
			t.Errorf("an error of %d bytes", len(err.Error()))
		}
	})
}
