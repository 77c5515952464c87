//go:build linux

package bounded_test

import (
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/trainyard/terraform-provider-trainyard/internal/acctest"
	"github.com/trainyard/terraform-provider-trainyard/internal/acctest/patience"
	"github.com/trainyard/terraform-provider-trainyard/internal/agent/statedir"
	"github.com/trainyard/terraform-provider-trainyard/internal/agent/telemetry"
	"github.com/trainyard/terraform-provider-trainyard/internal/bounded"
	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/storetest"
	"github.com/trainyard/terraform-provider-trainyard/internal/meter"
	"github.com/trainyard/terraform-provider-trainyard/internal/prometheus"
)

// serving returns a function that starts a server with this answer, and returns the client's error.
func serving(ask func(t *testing.T, url string) error, write func(w http.ResponseWriter)) func(*testing.T) error {
	return func(t *testing.T) error {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { write(w) }))
		defer server.Close()
		return ask(t, server.URL)
	}
}

func plain(w http.ResponseWriter) { _, _ = io.Copy(w, acctest.Offer("", " ")) }

// squeezed answers with gzip, in a thousandth of the bytes.
func squeezed(w http.ResponseWriter) {
	w.Header().Set("Content-Encoding", "gzip")
	packed := gzip.NewWriter(w)
	_, _ = io.Copy(packed, acctest.Offer("", " "))
	_ = packed.Close()
}

// measured returns why the metric of a source is missing.
func measured(source func(url string) domain.ScalingSource) func(*testing.T, string) error {
	return func(t *testing.T, url string) error {
		m := meter.New(nil)
		m.Limit = patience.Limit
		got := m.Read(acctest.Bounded(t), time.Now(), meter.Observation{}, []meter.Question{{Source: source(url)}})
		return errors.New(got[0].Why)
	}
}

func queue(q domain.QueueSource) domain.ScalingSource { return domain.ScalingSource{Queue: &q} }

// queried is a cluster for Prometheus queries.
type queried struct{ storetest.Memory }

func (*queried) Observe(context.Context, string) ([]domain.Observed, error) { return nil, nil }

func newQueried(t *testing.T) *queried {
	t.Helper()
	of := &queried{}
	_, err := engine.Put(t.Context(), of,
		domain.ClusterDocument{Spec: domain.Cluster{Name: "lab", Hosts: map[string]domain.Host{"gpu1": {}}}})
	if err != nil {
		t.Fatal(err)
	}
	return of
}

// TestOutside: whatever a source outside this program sends takes limited memory, and the error
// says that there is more.
func TestOutside(t *testing.T) {
	if !acctest.Alone(t) {
		return
	}
	endpoint := func(url string) domain.ScalingSource {
		return queue(domain.QueueSource{HTTP: &domain.HTTPQueue{URL: url}})
	}
	value := func(url string) domain.ScalingSource {
		return domain.ScalingSource{Prometheus: &domain.PrometheusSource{URL: url, Query: "up"}}
	}
	usage := func(t *testing.T, url string) error {
		_, err := prometheus.Usage(acctest.Bounded(t), prometheus.Settings{URL: url, Timeout: patience.Limit},
			newQueried(t), time.Minute)
		return err
	}
	series := func(t *testing.T, url string) error {
		r := prometheus.Range{Query: "up", Start: time.Unix(0, 0), End: time.Unix(600, 0), Step: time.Minute}
		_, err := prometheus.Settings{URL: url, Timeout: patience.Limit}.Range(acctest.Bounded(t), r)
		return err
	}
	for name, source := range map[string]struct {
		read func(*testing.T) error
		most int64
	}{
		"HTTP":       {serving(measured(endpoint), plain), bounded.Answer},
		"HTTP, gzip": {serving(measured(endpoint), squeezed), bounded.Answer},
		"a command": {serving(measured(func(string) domain.ScalingSource {
			return queue(domain.QueueSource{Command: []string{"cat", "/dev/zero"}})
		}), nil), bounded.Answer},
		"a hook":                    {serving(callHook, plain), bounded.Answer},
		"Redis":                     {redisServer(acctest.Offer("+", "x")), bounded.ReplyLine},
		"Prometheus, a value":       {serving(measured(value), plain), bounded.Answer},
		"Prometheus, a value, gzip": {serving(measured(value), squeezed), bounded.Answer},
		"Prometheus, usage":         {serving(usage, plain), bounded.Series},
		"Prometheus, usage, gzip":   {serving(usage, squeezed), bounded.Series},
		"Prometheus, a range, gzip": {serving(series, squeezed), bounded.Series},
		"the log of a process":      {fileLog, bounded.Log},
		"the agent of a host":       {agentSocketOffer, bounded.Report},
		"peers":                     {peers, bounded.Report},
	} {
		t.Run(name, func(t *testing.T) { acctest.RefusesMore(t, source.read, source.most) })
	}
}

func callHook(t *testing.T, url string) error {
	_, err := meter.Call(acctest.Bounded(t), domain.ScalingHook{URL: url}, nil)
	return err
}

// redisServer returns a function that asks a Redis with this reply, and returns the error.
func redisServer(reply io.Reader) func(*testing.T) error {
	return func(t *testing.T) error {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return err
		}
		defer listener.Close()
		go func() {
			connection, err := listener.Accept()
			if err != nil {
				return
			}
			defer connection.Close()
			_, _ = io.Copy(connection, reply)
		}()
		return measured(func(address string) domain.ScalingSource {
			return queue(domain.QueueSource{Redis: &domain.RedisQueue{Address: address, Key: "jobs"}})
		})(t, listener.Addr().String())
	}
}

// fileLog returns the error of reading a log that a process has filled.
func fileLog(t *testing.T) error {
	d := statedir.Dir{Root: t.TempDir(), Cluster: "lab"}
	if err := d.Create(); err != nil {
		return err
	}
	file, err := d.OpenLog("job-worker-0")
	if err != nil {
		return err
	}
	defer file.Close()
	if _, err := io.CopyN(file, acctest.Endless("some text\n"), 64<<20); err != nil {
		return err
	}
	if err := file.Truncate(1 << 30); err != nil { // the rest is one line of zeros
		return err
	}
	_, err = d.ReadLog("job-worker-0", engine.LogOptions{})
	return err
}

// agentSocketOffer returns the error of asking the agent of this host.
func agentSocketOffer(t *testing.T) error {
	socket := filepath.Join(t.TempDir(), "agent.sock")
	listener, err := telemetry.Listen(socket)
	if err != nil {
		return err
	}
	defer answerAt(listener)()
	_, err = telemetry.Ask(acctest.Bounded(t), socket, telemetry.Query{})
	return err
}

// peers returns the error of asking agents of other hosts.
func peers(t *testing.T) error {
	key, err := telemetry.NewKey()
	if err != nil {
		return err
	}
	folder := t.TempDir()
	if err := os.WriteFile(filepath.Join(folder, "agent.pem"), key, 0o600); err != nil {
		return err
	}
	const address = "127.94.64.1" // nothing else listens there
	listener, err := telemetry.ListenToPeers(fmt.Sprintf("%s:%d", address, telemetry.PeerPort), folder)
	if err != nil {
		return err
	}
	defer answerAt(listener)()
	for tries := 1; ; tries++ {
		reports, err := telemetry.AskPeers(acctest.Bounded(t), []telemetry.Peer{{Node: "node1", Address: address}},
			folder, telemetry.Query{})
		if err != nil || len(reports.Reports) > 0 {
			return fmt.Errorf("%d reports: %w", len(reports.Reports), err)
		}
		// It has some seconds, which a busy machine may keep from it.
		if why := reports.Failures["node1"]; !strings.Contains(why, "Client.Timeout") || tries == 10 {
			return errors.New(why)
		}
	}
}

// answerAt serves a listener until done is called.
func answerAt(listener net.Listener) (done func()) {
	server := &http.Server{
		Handler:           http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { plain(w) }),
		ReadHeaderTimeout: patience.Limit,
	}
	go func() { _ = server.Serve(listener) }() // until it is closed
	return func() { _ = server.Close() }
}
