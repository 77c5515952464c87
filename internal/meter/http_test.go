package meter

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/trainyard/terraform-provider-trainyard/internal/bounded"
	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
)

func TestHTTPQueue(t *testing.T) {
	over := make(chan struct{})
	defer close(over)
	for name, test := range map[string]struct {
		answer http.HandlerFunc
		want   float64
		why    string
	}{
		"a number": {
			func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, `{"length": 3}`) }, 3, "",
		},
		"no number": {
			func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, `{}`) }, 0,
			`/queue: no value at "length"`,
		},
		"an error": {
			func(w http.ResponseWriter, _ *http.Request) { http.Error(w, `{"length": 3}`, http.StatusNotFound) }, 0,
			"HTTP 404 Not Found",
		},
		"a redirect": {func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "http://other/login?as=ops", http.StatusFound)
		}, 0, "HTTP 302 Found: redirects are not followed; use http://other/login"},
		"too much": {func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, strings.Repeat(" ", bounded.Answer)+"3")
		}, 0, "its answer has more than 1048576 bytes"},
		"half of it": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "100")
			_, _ = io.WriteString(w, `{"length": 3}`)
		}, 0, "unexpected EOF"},
		"no end": {func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, `{"length":`)
			w.(http.Flusher).Flush() //nolint:forcetypeassert // it is one
			<-over
		}, 0, "no answer within 300ms"},
		"hangs up": {
			func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, 0, "request failed: EOF",
		},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.Method != http.MethodGet || r.Header.Get("Accept") != "application/json" ||
					r.URL.String() != "/queue?key=hunter2" {
					t.Errorf("the request is %s %s with %v", r.Method, r.URL, r.Header)
				}
				test.answer(w, r)
			}))
			server.Start()
			t.Cleanup(server.CloseClientConnections)
			m := patient(&fake{})
			if name == "no end" {
				m.Limit = 300 * time.Millisecond
			}
			got := read(t, m, Observation{}, Question{Source: domain.ScalingSource{Queue: &domain.QueueSource{
				HTTP: &domain.HTTPQueue{URL: server.URL + "/queue?key=hunter2", Path: "length"},
			}}})
			if test.why != "" {
				missed(t, got, test.why)
			} else if got.Why != "" || got.Value != test.want || !got.At.Equal(noon) {
				t.Errorf("the queue is %+v", got)
			}
			if strings.Contains(got.Why, "hunter2") {
				t.Errorf("%q shows what is in the address", got.Why)
			}
		})
	}
	missed(t, read(t, patient(&fake{}), Observation{}, Question{
		Source: domain.ScalingSource{Queue: &domain.QueueSource{HTTP: &domain.HTTPQueue{URL: "http://127.0.0.1:1/"}}},
	}), "http://127.0.0.1:1/: request failed: dial tcp")
	missed(t, read(t, patient(&fake{}), Observation{}, Question{
		Source: domain.ScalingSource{Queue: &domain.QueueSource{HTTP: &domain.HTTPQueue{URL: "://"}}},
	}), "the address is not valid")
}
