package acctest

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// Exporter is what a Prometheus scrapes: what it tells, in Prometheus' text format, so many seconds after the start, as
// this instance.
type Exporter struct {
	Instance string
	Tells    func(seconds float64) string
}

// StartPrometheus runs a real Prometheus that scrapes the exporters twice a second until the end of the test, and
// returns its address once it has scraped each some times.
func StartPrometheus(t testing.TB, exporters ...Exporter) string {
	t.Helper()
	program, err := exec.LookPath("prometheus")
	if err != nil {
		t.Fatal("there is no Prometheus on this machine: install Debian's package prometheus")
	}
	dir, start := t.TempDir(), time.Now()
	var config bytes.Buffer
	config.WriteString("global: { scrape_interval: 500ms, scrape_timeout: 500ms }\nscrape_configs:\n")
	scrapes := make([]atomic.Int64, len(exporters))
	for i, exporter := range exporters {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			scrapes[i].Add(1)
			w.Header().Set("Content-Type", "text/plain; version=0.0.4")
			// Each line has the time for which it was made: on a busy machine Prometheus' own is another, and rates are
			// not what they should be.
			now := time.Now()
			for line := range strings.Lines(strings.TrimSpace(exporter.Tells(now.Sub(start).Seconds()))) {
				_, _ = fmt.Fprintf(w, "%s %d\n", strings.TrimSuffix(line, "\n"), now.UnixMilli()) // who asked has gone
			}
		}))
		t.Cleanup(server.Close)
		fmt.Fprintf(&config, "- job_name: exporter%d\n  static_configs: [{ targets: [%q], labels: { instance: %q } }]\n", i, strings.TrimPrefix(server.URL, "http://"), exporter.Instance)
	}
	file := filepath.Join(dir, "prometheus.yml")
	if err := os.WriteFile(file, config.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	address := freeAddress(t)
	var log bytes.Buffer
	ended := runUntilTheEnd(t, &log, program, "--config.file="+file, "--storage.tsdb.path="+filepath.Join(dir, "data"), "--web.listen-address="+address)
	Eventually(t, "Prometheus to scrape", func() bool {
		select {
		case err := <-ended:
			t.Fatalf("Prometheus has ended (%v):\n%s", err, log.String())
		default:
		}
		for i := range scrapes {
			if scrapes[i].Load() < 4 {
				return false
			}
		}
		return true
	})
	return "http://" + address
}

// freeAddress returns an address of this machine at which nobody listens.
func freeAddress(t testing.TB) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	return listener.Addr().String()
}

// runUntilTheEnd runs a program until the end of the test, whatever ends it, and returns what receives how it ended.
func runUntilTheEnd(t testing.TB, output *bytes.Buffer, program string, args ...string) <-chan error {
	t.Helper()
	command := exec.Command(program, args...)
	command.Stdout, command.Stderr = output, output
	dieWithUs(command)
	started, ended := make(chan error), make(chan error, 1)
	go func() {
		// The kernel ends it with the thread that started it.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := command.Start()
		started <- err
		if err == nil {
			ended <- command.Wait()
			close(ended)
		}
	}()
	if err := <-started; err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := command.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
			t.Errorf("%s can't be ended: %v", program, err)
		}
		for range ended { // until it is closed
		}
	})
	return ended
}
