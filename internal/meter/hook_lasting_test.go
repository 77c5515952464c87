package meter

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/trainyard/terraform-provider-trainyard/internal/acctest"
	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
)

// answered is a hook's answer in a test.
type answered struct {
	status              int
	location, after     string
	body                string
	looked, unreachable bool
}

func TestCallHook(t *testing.T) {
	const asking = "http://rebalancer/changes/1?token=hunter2"
	for name, test := range map[string]struct {
		answered
		want  Reply
		why   string
		again bool
	}{
		"done":                 {answered{status: 200, body: "whatever"}, Reply{Done: true}, "", false},
		"done, without a word": {answered{status: 204}, Reply{Done: true}, "", false},
		"at work":              {answered{status: 202}, Reply{}, "", false},
		"at work, with an address": {
			answered{status: 202, location: "https://other:8443/work/7?x=1", body: `{"progress": 62.25}`},
			Reply{Location: "https://other:8443/work/7?x=1", Progress: "62.25 %"}, "", false,
		},
		"at work, with a path": {
			answered{status: 202, location: "/work/7", body: `{"progress": "3 of 7\npartitions"}`},
			Reply{Location: "SERVER/work/7", Progress: "3 of 7 partitions"}, "", false,
		},
		"at work, not to be asked soon": {
			answered{status: 202, after: "30"}, Reply{After: 30 * time.Second}, "", false,
		},
		"at work for ever": {
			answered{status: 202, after: "2147483647"}, Reply{After: 10 * time.Minute}, "", false,
		},
		"at work since long": {
			answered{status: 202, after: "Wed, 21 Oct 2015 07:28:00 GMT"}, Reply{}, "", false,
		},
		"a command for the terminal": {
			answered{status: 202, body: `{"progress": "\u001b[2J80 %"}`}, Reply{Progress: "\uFFFD[2J80 %"}, "", false,
		},
		"progress of objects": {answered{status: 202, body: `{"progress": {"done": 3}}`}, Reply{}, "", false},
		"no progress":         {answered{status: 202, body: `{"progress": null}`}, Reply{}, "", false},
		"no JSON":             {answered{status: 202, body: `<html>`}, Reply{}, "", false},
		"much to say": {
			answered{status: 202, body: `{"progress": "` + strings.Repeat("ä", 200) + `"}`},
			Reply{Progress: strings.Repeat("ä", 98) + "…"}, "", false,
		},

		"an address of another kind": {
			answered{status: 202, location: "file:///etc/passwd"}, Reply{}, "an invalid Location", false,
		},
		"an address with a password": {
			answered{status: 202, location: "http://ops:hunter2@a/"}, Reply{}, "an invalid Location", false,
		},
		"an address that is none": {
			answered{status: 202, location: "http://%"}, Reply{}, "an invalid Location", false,
		},
		"a very long address": {
			answered{status: 202, location: "/" + strings.Repeat("a", 2000)}, Reply{}, "an invalid Location", false,
		},
		"it fails": {
			answered{status: 500, body: `{"title": "no such broker", "detail": 7}`}, Reply{},
			"HTTP 500 Internal Server Error: no such broker", false,
		},
		"it can't": {
			answered{status: 409, body: `{"title": "no", "detail": "the last\treplica"}`}, Reply{},
			"HTTP 409 Conflict: the last replica", false,
		},
		"it is not there": {answered{status: 404}, Reply{}, "HTTP 404 Not Found", false},
		"it is elsewhere": {
			answered{status: 302, location: "http://a/b?token=hunter2"}, Reply{},
			"HTTP 302 Found: redirects are not followed; use http://a/b", false,
		},
		"it is being started": {
			answered{status: 503, after: "7"}, Reply{After: 7 * time.Second}, "HTTP 503 Service Unavailable", true,
		},
		"too many ask":      {answered{status: 429}, Reply{}, "HTTP 429 Too Many Requests", true},
		"a gateway is late": {answered{status: 504}, Reply{}, "HTTP 504 Gateway Timeout", true},
		"nobody is there":   {answered{unreachable: true}, Reply{}, "request failed", true},
		"asked: done":       {answered{status: 200, looked: true}, Reply{Done: true}, "", false},
		"asked: done, see there": {
			answered{status: 303, location: "/result", looked: true}, Reply{Done: true}, "", false,
		},
		"asked: at work": {
			answered{status: 202, looked: true, body: `{"progress": 0}`}, Reply{Location: asking, Progress: "0 %"}, "",
			false,
		},
		"asked: at work somewhere else": {
			answered{status: 202, looked: true, location: "/work/8"}, Reply{Location: "SERVER/work/8"}, "", false,
		},
		"asked: it has forgotten":    {answered{status: 404, looked: true}, Reply{}, "", false},
		"asked: it is gone":          {answered{status: 410, looked: true}, Reply{}, "", false},
		"asked: it fails":            {answered{status: 500, looked: true}, Reply{}, "HTTP 500", false},
		"asked: it is being started": {answered{status: 502, looked: true}, Reply{}, "HTTP 502", true},
		"asked: nobody is there":     {answered{unreachable: true, looked: true}, Reply{}, "request failed", true},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				body, err := io.ReadAll(r.Body)
				want := http.MethodPost
				if test.looked {
					want = http.MethodGet
				} else if r.Header.Get("Idempotency-Key") != `"change-1"` ||
					r.Header.Get("Prefer") != "respond-async" || string(body) != `{"to":2}` {
					t.Errorf("it received %s with %v", body, r.Header)
				}
				if r.Method != want || err != nil || r.URL.RawQuery != "token=hunter2" {
					t.Errorf("it is asked by %s %s; %v", r.Method, r.URL, err)
				}
				for header, value := range map[string]string{"Location": test.location, "Retry-After": test.after} {
					if value != "" {
						w.Header().Set(header, value)
					}
				}
				w.WriteHeader(test.status)
				_, _ = io.WriteString(w, test.body)
			}))
			defer server.Close()
			if test.unreachable {
				server.Close()
			}
			hook, location, want := domain.ScalingHook{URL: server.URL + "/?token=hunter2"}, "", test.want
			if test.looked {
				location = strings.Replace(asking, "http://rebalancer", server.URL, 1)
			}
			if want.Location = strings.Replace(want.Location, "SERVER", server.URL, 1); want.Location == asking {
				want.Location = location
			}
			got, err := CallHook(acctest.Bounded(t), hook, "change-1", location, map[string]int{"to": 2})
			transient, again := errors.AsType[*TransientError](err)
			if again {
				got.After = transient.After
			}
			message := ""
			if err != nil {
				message = err.Error()
			}
			if got != want || again != test.again || (test.why == "") != (err == nil) ||
				!strings.Contains(message, test.why) || strings.Contains(message, "hunter2") {
				t.Errorf("it is %+v, %v (again: %v); want %+v, %q (%v)", got, err, again, want, test.why, test.again)
			}
		})
	}
}

// TestCallHookCommand: a command runs until it has finished, with the change on its standard input.
func TestCallHookCommand(t *testing.T) {
	call := func(ctx context.Context, command ...string) (Reply, error) {
		return CallHook(ctx, domain.ScalingHook{Command: command}, "change-1", "", map[string]int{"to": 2})
	}
	if got, err := call(acctest.Bounded(t), "grep", "-q", `{"to":2}`); err != nil || got != (Reply{Done: true}) {
		t.Errorf("it is %+v, %v", got, err)
	}
	if _, err := call(acctest.Bounded(t), "sh", "-c", "echo no broker >&2; exit 1"); err == nil ||
		!strings.Contains(err.Error(), "sh: failed with exit status 1: no broker") {
		t.Errorf("one that fails: %v", err)
	}
	over := errors.New("its time is over")
	ctx, cancel := context.WithTimeoutCause(t.Context(), 50*time.Millisecond, over)
	defer cancel()
	if _, err := call(ctx, "sleep", "1000"); !errors.Is(err, over) {
		t.Errorf("one that hangs: %v", err)
	}
}

// TestCallOff: a hook is asked to stop by DELETE.
func TestCallOff(t *testing.T) {
	asked := make(chan string, 1)
	server := httptest.NewServer(
		http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { asked <- r.Method + " " + r.URL.String() }),
	)
	defer server.Close()
	if err := CallOff(acctest.Bounded(t), server.URL+"/changes/1"); err != nil {
		t.Error(err)
	}
	if got := <-asked; got != "DELETE /changes/1" {
		t.Errorf("it was asked by %s", got)
	}
}

// FuzzStanding: whatever a hook answers becomes one short line that is safe for a terminal, and a
// URL that can be requested.
func FuzzStanding(f *testing.F) {
	for _, body := range []string{
		"", `{"progress": 1e308}`, `{"progress": "\u202e80 %"}`, `{"detail": "x", "title": null}`, `[]`,
		`{"progress": "` + strings.Repeat("\u00e4", 300) + `"}`,
	} {
		for _, status := range []int{200, 202, 303, 404, 503} {
			f.Add(status, body, "/changes/1", "3", true)
			f.Add(status, body, "http://a:b@c/", "Wed, 21 Oct 2015 07:28:00 GMT", false)
			f.Add(status, body, "ftp://c/", "-1", false)
		}
	}
	f.Fuzz(func(t *testing.T, status int, body, location, after string, looked bool) {
		asked := &url.URL{Scheme: "http", Host: "rebalancer", Path: "/changes/1"}
		response := &http.Response{
			StatusCode: status, Status: http.StatusText(status),
			Header: http.Header{"Location": {location}, "Retry-After": {after}},
			Request: &http.Request{
				Method: map[bool]string{true: http.MethodGet, false: http.MethodPost}[looked], URL: asked,
			},
		}
		reply, err := standing(response, []byte(body), time.Unix(1_800_000_000, 0))
		if err != nil && reply.Done ||
			reply.Done != (err == nil && (status >= 200 && status <= 299 && status != 202 || status == 303 && looked)) {
			t.Errorf("%d is %+v, %v", status, reply, err)
		}
		if reply.After < 0 || reply.After > longestPause || len(reply.Location) > longestLocation {
			t.Errorf("it is to be asked at %q in %s", reply.Location, reply.After)
		}
		if u, err := url.Parse(reply.Location); err != nil ||
			reply.Location != "" && (u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil) {
			t.Errorf("it is to be asked at %q, %v", reply.Location, err)
		}
		lines := []string{reply.Progress}
		if err != nil {
			lines = append(lines, err.Error())
		}
		for i, text := range lines {
			if !utf8.ValidString(text) || strings.ContainsFunc(text, unicode.IsControl) ||
				i == 0 && len(text) > longestProgress {
				t.Errorf("it says %q", text)
			}
		}
		if _, err := json.Marshal(reply); err != nil {
			t.Error(err)
		}
	})
}
