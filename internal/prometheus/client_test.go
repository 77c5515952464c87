package prometheus

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"log"
	"math"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/trainyard/terraform-provider-trainyard/internal/acctest"
	"github.com/trainyard/terraform-provider-trainyard/internal/acctest/patience"
	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
)

func TestParseURL(t *testing.T) {
	for text, want := range map[string]string{
		"http://prometheus:9090":              "",
		"https://example.com/prometheus/":     "",
		"prometheus:9090":                     "use http:// or https:// with a host",
		"ftp://prometheus":                    "use http:// or https:// with a host",
		"https://":                            "use http:// or https:// with a host",
		"http://[":                            "use http:// or https:// with a host",
		"https://ops:verysecret@prometheus":   "set them in the provider's block prometheus",
		"https://ops:verysecret@prometheus:x": "use http:// or https:// with a host",
		"https://prometheus/?token=aaa":       "has more than scheme, host, port and path",
		"https://prometheus/#queries":         "has more than scheme, host, port and path",
	} {
		_, err := ParseURL(text)
		switch {
		case want == "" && err != nil:
			t.Errorf("%s: %v", text, err)
		case want != "" && (err == nil || !strings.Contains(err.Error(), want)):
			t.Errorf("%s: %v, want %q", text, err, want)
		case err != nil && strings.Contains(err.Error(), "verysecret"):
			t.Errorf("%s: the error %q shows the password", text, err)
		}
	}
}

// noAnswer is the case that takes as long as the client has patience.
const noAnswer = "no answer"

// An invalid answer becomes an error that describes it, without credentials.
func TestFaults(t *testing.T) {
	const secret = "verysecret"
	elsewhere := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		t.Errorf("somebody else was asked, with %q", r.Header.Get("Authorization"))
	}))
	defer elsewhere.Close()
	for name, test := range map[string]struct {
		answer http.HandlerFunc
		want   string
	}{
		"no access": {
			func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "who are you?", http.StatusUnauthorized) },
			`client error: 401 ("who are you?`,
		},
		"broken": {
			func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "", http.StatusBadGateway) },
			"server error: 502",
		},
		"a redirect": {func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, elsewhere.URL, http.StatusTemporaryRedirect)
		}, "bad response code 307"},
		"a web page": {
			func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "<html>") },
			"the Prometheus at http://",
		},
		noAnswer: {
			func(_ http.ResponseWriter, r *http.Request) { _, _ = io.Copy(io.Discard, r.Body); <-r.Context().Done() },
			"did not answer within 300ms",
		},
		"hangs up": {
			func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, "querying the Prometheus",
		},
		"out of time": {
			says(http.StatusServiceUnavailable, `{"status":"error","errorType":"timeout","error":"query timed out"}`),
			"query timed out",
		},
		"bad query": {
			says(http.StatusBadRequest, `{"status":"error","errorType":"bad_data","error":"parse error"}`),
			"Prometheus rejected the query for host_names, node_uname_info: bad_data: parse error",
		},
		"inconsistent": {
			says(http.StatusOK, `{"status":"success","data":{"resultType":"vector","result":7}}`),
			"the Prometheus at http://",
		},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(test.answer)
			defer server.Close()
			settings := Settings{
				URL: server.URL, Timeout: patience.Limit, Credentials: Credentials{BearerToken: secret},
			}
			if name == noAnswer {
				settings.Timeout = 300 * time.Millisecond
			}
			_, err := Usage(acctest.Bounded(t), settings, newLab(t), time.Minute)
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Fatalf("the error is %v, want %q", err, test.want)
			}
			if strings.Contains(err.Error(), secret) {
				t.Errorf("the error %q shows the token", err)
			}
		})
	}
}

func says(status int, text string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		_, _ = io.WriteString(w, text)
	}
}

// An untrusted certificate is an error.
func TestTLS(t *testing.T) {
	server := httptest.NewUnstartedServer(says(http.StatusOK, nothing))
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.StartTLS()
	defer server.Close()
	_, err := Usage(acctest.Bounded(t), Settings{URL: server.URL, Timeout: patience.Limit}, newLab(t), time.Minute)
	if err == nil || !strings.Contains(err.Error(), "certificate signed by unknown authority") {
		t.Errorf("the error is %v", err)
	}
}

// nothing is the answer of a Prometheus without data.
const nothing = `{"status":"success","data":{"resultType":"vector","result":[]}}`

func TestCredentials(t *testing.T) {
	for name, test := range map[string]struct {
		credentials Credentials
		want        string
	}{
		"a token":       {Credentials{BearerToken: "abc"}, "Bearer abc"},
		"a password":    {Credentials{Username: "ops", Password: "abc"}, "Basic b3BzOmFiYw=="},
		"none is asked": {Credentials{}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if got := r.Header.Get("Authorization"); got != test.want {
					t.Errorf("%s is sent, want %s", got, test.want)
				}
				says(http.StatusOK, nothing)(w, r)
			}))
			defer server.Close()
			usage, err := Usage(acctest.Bounded(t),
				Settings{URL: server.URL + "/", Timeout: patience.Limit, Credentials: test.credentials}, newLab(t),
				time.Minute)
			if err != nil || usage.Hosts["gpu1"].Reason == "" || usage.Members["job-ps-0"].Reason == "" {
				t.Errorf("what nobody knows is %+v (%v)", usage, err)
			}
		})
	}
}

// Credentials are only sent over TLS, to this machine, or if allowed explicitly.
func TestCredentialsStaySecret(t *testing.T) {
	token, password := Credentials{BearerToken: "verysecret"}, Credentials{Username: "ops", Password: "verysecret"}
	insecure := func(c Credentials) Credentials {
		c.Insecure = true
		return c
	}
	for name, test := range map[string]struct {
		url         string
		credentials Credentials
		refused     bool
	}{
		"a token by http":                {"http://prometheus:9090", token, true},
		"a password by http":             {"http://10.0.0.5:9090/prometheus", password, true},
		"by HTTP in capitals":            {"HTTP://prometheus", token, true},
		"to a name that looks like it":   {"http://localhost.example.com", token, true},
		"to an address that looks so":    {"http://127.0.0.1.example.com", token, true},
		"to any address of this machine": {"http://0.0.0.0:9090", token, true},
		"asked for":                      {"http://prometheus:9090", insecure(token), false},
		"by https":                       {"https://prometheus", token, false},
		"to this machine":                {"http://localhost:9090", password, false},
		"to this machine's address":      {"http://127.0.0.1:9090", token, false},
		"to its address, version 6":      {"http://[::1]:9090", token, false},
		"none":                           {"http://prometheus:9090", Credentials{}, false},
	} {
		t.Run(name, func(t *testing.T) {
			sent := false
			settings := Settings{
				URL: test.url, Credentials: test.credentials, Timeout: time.Minute,
				transport: seen(func(*http.Request) { sent = true }),
			}
			checked := settings.Check()
			_, err := Usage(t.Context(), settings, newLab(t), time.Minute)
			if sent == test.refused || (checked != nil) != test.refused || (err != nil) != test.refused {
				t.Fatalf("it is sent: %t; %v, %v", sent, checked, err)
			}
			if test.refused &&
				(!strings.Contains(err.Error(), "set insecure = true") || strings.Contains(err.Error(), "verysecret")) {
				t.Errorf("the error is %v", err)
			}
		})
	}
}

// seen is a transport that reports each request, and answers with nothing.
type seen func(*http.Request)

func (s seen) RoundTrip(r *http.Request) (*http.Response, error) {
	s(r)
	return answering(nothing).RoundTrip(r)
}

// A redirect from https to http is not followed, with or without credentials.
func TestRedirectToHTTP(t *testing.T) {
	elsewhere := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		t.Errorf("somebody else was asked, with %q", r.Header.Get("Authorization"))
	}))
	defer elsewhere.Close()
	server := httptest.NewTLSServer(http.RedirectHandler(elsewhere.URL, http.StatusFound))
	defer server.Close()
	settings := Settings{
		URL: server.URL, Credentials: Credentials{BearerToken: "verysecret"}, Timeout: patience.Limit,
		transport: server.Client().Transport,
	}
	if _, err := Usage(acctest.Bounded(t), settings, newLab(t), time.Minute); err == nil ||
		!strings.Contains(err.Error(), "302") {
		t.Errorf("the error is %v", err)
	}
}

// answering is a transport that always answers with this text.
type answering string

func (a answering) RoundTrip(*http.Request) (*http.Response, error) {
	return &http.Response{
		StatusCode: http.StatusOK, Header: http.Header{}, Body: io.NopCloser(bytes.NewReader([]byte(a))),
	}, nil
}

// Any answer becomes an error or printable values.
func FuzzUsage(f *testing.F) {
	const vector = `{"status":"success","data":{"resultType":"vector","result":[{"metric":{%s},"value":[1,%q]}]}}`
	f.Add(nothing)
	f.Add(`{"status":"success","data":null}`)
	f.Add(`{"status":"success","data":{"resultType":"vector","result":[null]}}`)
	f.Add(`{"status":"success","data":{"resultType":"scalar","result":[1,"2"]}}`)
	for _, labels := range []string{
		`"instance":"gpu1:9100","nodename":"gpu1"`, `"UUID":"GPU-1","Hostname":"gpu1","trainyard_statistic":"p95"`,
		`"member":"job-ps-0"`,
	} {
		for _, number := range []string{"1", "NaN", "+Inf", "1e300", "-1"} {
			f.Add(fmt.Sprintf(vector, labels, number))
		}
	}
	f.Fuzz(func(t *testing.T, answer string) {
		usage, err := Usage(t.Context(),
			Settings{URL: "http://prometheus", Timeout: time.Minute, transport: answering(answer)}, newLab(t),
			time.Minute)
		if err != nil {
			if _, ok := errors.AsType[*QueryError](err); !ok {
				t.Errorf("%v is no error of a query", err)
			}
			return
		}
		if len(usage.Hosts) != 2 || len(usage.Members) != 3 || usage.GPUs["GPU-2"].Host != "gpu2" {
			t.Errorf("it reports %+v", usage)
		}
		check := func(at time.Time, measures ...domain.Measure) {
			if _, err := at.MarshalText(); err != nil {
				t.Error(err)
			}
			for _, m := range measures {
				for _, value := range []*float64{m.Last, m.Mean, m.Max, m.P95} {
					if value != nil && (math.IsNaN(*value) || math.IsInf(*value, 0)) {
						t.Errorf("%v is no number", *value)
					}
				}
			}
		}
		for _, u := range usage.Hosts {
			check(u.SampledAt, u.CPUs, u.MemoryMiB, u.Load, u.DiskMiB, u.ReceivedBps, u.SentBps)
		}
		for _, u := range usage.GPUs {
			check(u.SampledAt, u.Utilisation, u.MemoryMiB, u.TemperatureC, u.PowerW)
		}
		for _, u := range usage.Members {
			check(u.SampledAt, u.CPUs, u.MemoryMiB, u.GPUMemoryMiB)
		}
	})
}

// Any text is refused, or is a URL with a host and without a password.
func FuzzParseURL(f *testing.F) {
	for _, text := range []string{"http://prometheus:9090", "https://a:b@c/d?e#f", "http://[::1]:9", "//x"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		u, err := ParseURL(text)
		if err == nil && (u.Hostname() == "" || u.User != nil || !strings.HasPrefix(u.Scheme, "http")) {
			t.Errorf("%q is taken for %v", text, u)
		}
	})
}
