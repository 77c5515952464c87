package metrics

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/trainyard/terraform-provider-trainyard/internal/acctest"
)

// TestServe: a port in use by somebody else is logged once, and taken as soon as it is free.
func TestServe(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := taken.Addr().String()
	ctx, cancel := context.WithCancel(t.Context())
	log := make(logLines, 16)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		Serve(ctx, address, ControllerHandler(func() []PolicyStatus { return nil }, func() []MemberInfo {
			return []MemberInfo{{Cluster: "lab", Member: "job-worker-0"}}
		}), slog.New(slog.NewTextHandler(log, nil)))
	}()
	acctest.Eventually(t, "a complaint", func() bool { return len(log) > 0 })
	if complaint := <-log; !strings.Contains(complaint, "address already in use") {
		t.Errorf("it says %s", complaint)
	}
	if err := taken.Close(); err != nil {
		t.Fatal(err)
	}
	acctest.Eventually(t, "an answer", func() bool {
		response, err := http.Get("http://" + address + path)
		if err != nil {
			return false
		}
		defer response.Body.Close()
		text, err := io.ReadAll(response.Body)
		return err == nil && bytes.Contains(text, []byte(`member="job-worker-0"`))
	})
	cancel()
	<-ended
	if len(log) > 0 {
		t.Errorf("it says more: %s", <-log)
	}
}

// logLines is a log with one line per element.
type logLines chan string

// Write appends a line.
func (s logLines) Write(line []byte) (int, error) {
	s <- string(line)
	return len(line), nil
}
