package meter

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/trainyard/terraform-provider-trainyard/internal/acctest"
	"github.com/trainyard/terraform-provider-trainyard/internal/acctest/patience"
	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
)

func TestCall(t *testing.T) {
	question := map[string]any{"count": 3, "members": []string{"a", "b"}}
	const asked = `{"count":3,"members":["a","b"]}`
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil || r.Method != http.MethodPost || r.Header.Get("Content-Type") != "application/json" ||
			string(body) != asked {
			t.Errorf("the request is %s with %q, %v", r.Method, body, err)
		}
		switch r.URL.Path {
		case "/hang":
			<-r.Context().Done()
		case "/redirect":
			http.Redirect(w, r, "/", http.StatusFound)
		case "/nowhere":
			w.Header().Set("Location", "https://%hunter2")
			w.WriteHeader(http.StatusFound)
		case "/nothing":
			w.WriteHeader(http.StatusNoContent)
		case "/broken":
			w.WriteHeader(http.StatusInternalServerError)
		default:
			_, _ = io.WriteString(w, "5")
		}
	}))
	defer server.Close()
	short := new(domain.Duration(200 * time.Millisecond))
	for name, test := range map[string]struct {
		hook      domain.ScalingHook
		want, why string
	}{
		"an address":     {domain.ScalingHook{URL: server.URL}, "5", ""},
		"nothing to say": {domain.ScalingHook{URL: server.URL + "/nothing"}, "", ""},
		"a broken one": {
			domain.ScalingHook{URL: server.URL + "/broken?token=hunter2"}, "", "/broken: HTTP 500",
		},
		"a redirect": {
			domain.ScalingHook{URL: server.URL + "/redirect"}, "", "HTTP 302 Found: redirects are not followed; use /",
		},
		"a redirect to no address": {
			domain.ScalingHook{URL: server.URL + "/nowhere"}, "", "/nowhere: HTTP 302 Found",
		},
		"one that hangs": {
			domain.ScalingHook{URL: server.URL + "/hang", Timeout: short}, "", "no answer within 200ms",
		},
		"no address":       {domain.ScalingHook{URL: "http://ops:hunter2@%"}, "", "the address is not valid"},
		"a command":        {domain.ScalingHook{Command: []string{"cat"}}, asked, ""},
		"one without ears": {domain.ScalingHook{Command: []string{"echo", "up"}}, "up\n", ""},
		"a command that fails": {
			domain.ScalingHook{Command: []string{"sh", "-c", "echo no model >&2; exit 1"}}, "",
			"sh: failed with exit status 1: no model",
		},
		"a command that hangs": {
			domain.ScalingHook{Command: []string{"sleep", "1000"}, Timeout: short}, "", "sleep: no answer within 200ms",
		},
		"nobody": {domain.ScalingHook{}, "", "the hook has neither url nor command"},
	} {
		t.Run(name, func(t *testing.T) {
			if test.hook.Timeout == nil {
				test.hook.Timeout = new(domain.Duration(patience.Limit))
			}
			got, err := Call(acctest.Bounded(t), test.hook, question)
			switch {
			case test.why == "" && (err != nil || string(got) != test.want):
				t.Errorf("the answer is %q, %v; want %q", got, err, test.want)
			case test.why != "" && (err == nil || !strings.Contains(err.Error(), test.why) ||
				strings.Contains(err.Error(), "hunter2") || got != nil):
				t.Errorf("the answer is %q, %v; want the error %q", got, err, test.why)
			}
		})
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if got, err := Call(ctx, domain.ScalingHook{URL: server.URL}, question); err == nil {
		t.Errorf("a question that is taken back is answered with %q", got)
	}
	if got, err := Call(t.Context(), domain.ScalingHook{URL: server.URL}, func() {}); err == nil {
		t.Errorf("what is no JSON is answered with %q", got)
	}
}

// The errors of a hook whose URL is a secret name only its server.
func TestCallSecret(t *testing.T) {
	for name, test := range map[string]struct {
		path, location string
		status         int
		why            string
	}{
		"it works": {path: "/hunter2", status: http.StatusNoContent},
		"it fails": {path: "/a%2Fb/hunter2", status: http.StatusForbidden, why: "SERVER: HTTP 403 Forbidden"},
		"another server": {
			path: "/hunter2", status: http.StatusFound, location: "https://chat.example:8443/v2/hunter2?key=hunter2",
			why: "SERVER: HTTP 302 Found: redirects are not followed; use https://chat.example:8443",
		},
		"another path": {
			path: "/hunter2/", status: http.StatusPermanentRedirect, location: "/hunter2",
			why: "SERVER: HTTP 308 Permanent Redirect: redirects are not followed; use an address that is not shown",
		},
		"a redirect to no address": {
			path: "/hunter2", status: http.StatusFound, location: "https://chat.example:port/hunter2",
			why: "SERVER: HTTP 302 Found",
		},
		"a broken address": {path: "/hunter2%", why: "an address that is not shown is not valid"},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Location", test.location)
				w.WriteHeader(test.status)
			}))
			defer server.Close()
			said := ""
			if err := CallSecret(acctest.Bounded(t), domain.ScalingHook{URL: server.URL + test.path}, 1); err != nil {
				said = strings.ReplaceAll(err.Error(), server.URL, "SERVER")
			}
			if said != test.why {
				t.Errorf("it says %q, want %q", said, test.why)
			}
		})
	}
}
