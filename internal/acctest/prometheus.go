package acctest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// Exporter is a target for Prometheus to scrape, under this instance label. Metrics returns its metrics in Prometheus's
// text format, given the seconds since the start.
type Exporter struct {
	Instance string
	Metrics  func(seconds float64) string
}

// apart is the minimum time between two samples: their timestamps have milliseconds, which is too coarse for rates over
// less. On a busy machine a scrape may end late, and the next one starts at once.
const apart = 250 * time.Millisecond

// StartPrometheus runs a real Prometheus that scrapes the exporters twice a second until the end of the test, and
// returns its address once it has scraped each of them a few times.
func StartPrometheus(t testing.TB, exporters ...Exporter) string {
	t.Helper()
	program, err := exec.LookPath("prometheus")
	if err != nil {
		t.Fatal("there is no Prometheus on this machine: install Debian's package prometheus")
	}
	dir, start := t.TempDir(), time.Now()
	var config bytes.Buffer
	config.WriteString("global: { scrape_interval: 500ms, scrape_timeout: 500ms }\nscrape_configs:\n")
	for i, exporter := range exporters {
		var mu sync.Mutex
		var last time.Time
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			mu.Lock()
			if now := time.Now(); now.Sub(last) >= apart {
				last = now
			}
			now := last
			mu.Unlock()
			w.Header().Set("Content-Type", "text/plain; version=0.0.4")
			// Timestamps are explicit: on a busy machine Prometheus's own would differ, and distort rates.
			for line := range strings.Lines(strings.TrimSpace(exporter.Metrics(now.Sub(start).Seconds()))) {
				// the client may be gone
				_, _ = fmt.Fprintf(w, "%s %d\n", strings.TrimSuffix(line, "\n"), now.UnixMilli())
			}
		}))
		t.Cleanup(server.Close)
		fmt.Fprintf(&config,
			"- job_name: exporter%d\n  static_configs: [{ targets: [%q], labels: { instance: %q } }]\n", i,
			strings.TrimPrefix(server.URL, "http://"), exporter.Instance)
	}
	file := filepath.Join(dir, "prometheus.yml")
	if err := os.WriteFile(file, config.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	return "http://" + serve(t, "Prometheus", func(address string) *exec.Cmd {
		return exec.Command(program, "--config.file="+file, "--storage.tsdb.path="+filepath.Join(dir, "data"),
			"--web.listen-address="+address)
	}, func(address string) bool { return scraped(t, address) == len(exporters) })
}

// scraped returns how many exporters a Prometheus has scraped a few times, or -1 while it doesn't answer. The exporters
// don't know: answers that come too late are lost.
func scraped(t testing.TB, address string) int {
	const query = "count(sum_over_time(up[1h]) >= 4) or vector(0)"
	request, err := http.NewRequestWithContext(Bounded(t), http.MethodGet,
		"http://"+address+"/api/v1/query?query="+url.QueryEscape(query), nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return -1
	}
	defer response.Body.Close()
	var answer struct {
		Data struct {
			Result []struct {
				Value [2]json.RawMessage `json:"value"`
			} `json:"result"`
		} `json:"data"`
	}
	if err := json.NewDecoder(response.Body).Decode(&answer); err != nil || len(answer.Data.Result) != 1 {
		return -1
	}
	count, err := strconv.Atoi(strings.Trim(string(answer.Data.Result[0].Value[1]), `"`))
	if err != nil {
		return -1
	}
	return count
}

// serve runs a server at a free address of this machine until the end of the test, and returns the address once it
// answers. If another program takes the address first, it tries another one.
func serve(
	t testing.TB, what string, command func(address string) *exec.Cmd, answers func(address string) bool,
) string {
	t.Helper()
	for {
		address, taken := freeAddress(t), false
		var log bytes.Buffer
		ended := runUntilTheEnd(t, &log, command(address))
		Eventually(t, what+" to answer", func() bool {
			select {
			case err := <-ended:
				if taken = strings.Contains(strings.ToLower(log.String()), "address already in use"); !taken {
					t.Fatalf("%s has ended (%v):\n%s", what, err, log.String())
				}
				return true
			default:
			}
			return answers(address)
		})
		if !taken {
			return address
		}
	}
}

// freeAddress returns an unused address of this machine.
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

// runUntilTheEnd runs a program that ends with the test, even a killed one. The channel receives how it ended.
func runUntilTheEnd(t testing.TB, output *bytes.Buffer, command *exec.Cmd) <-chan error {
	t.Helper()
	command.Stdout, command.Stderr = output, output
	dieWithUs(command)
	started, ended := make(chan error), make(chan error, 1)
	go func() {
		// The kernel kills it when the thread that started it ends.
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
			t.Errorf("%s can't be ended: %v", command.Path, err)
		}
		for range ended { // until closed
		}
	})
	return ended
}
