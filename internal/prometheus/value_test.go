package prometheus

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/trainyard/terraform-provider-trainyard/internal/acctest"
	"github.com/trainyard/terraform-provider-trainyard/internal/acctest/patience"
)

// A real Prometheus returns the single value of a query. Having none, or several, is an error.
func TestValue(t *testing.T) {
	t.Parallel()
	settings := Settings{URL: acctest.StartPrometheus(t, exporters...), Timeout: patience.Limit}
	for query, want := range map[string]float64{
		"node_load1":          1.5,
		"sum(node_load1) * 2": 3,
		"scalar(node_load1)":  1.5,
		"7":                   7,
		"-node_load1":         -1.5,
	} {
		before := time.Now().Add(-time.Second)
		value, at, err := settings.Value(t.Context(), query, time.Minute)
		if err != nil || value != want || at.Before(before) || at.After(time.Now().Add(time.Second)) {
			t.Errorf("%s is %v at %s, %v; want %v", query, value, at, err, want)
		}
	}
	for query, says := range map[string]string{
		"node_load1 {":                 "Prometheus rejected the query for the value, node_load1 {",
		"absent_metric":                "the query absent_metric returns nothing",
		"node_cpu_seconds_total":       "it returns 5 series, such as node_cpu_seconds_total{",
		"node_load1[1m]":               "it returns a matrix instead of one value",
		"node_load1 * NaN":             "the query node_load1 * NaN returns NaN",
		"scalar(absent_metric)":        "the query scalar(absent_metric) returns NaN",
		"node_load1 / (node_load1*0)":  "returns +Inf",
		"sum(node_cpu_seconds_total{)": "Prometheus rejected the query",
	} {
		value, _, err := settings.Value(t.Context(), query, time.Minute)
		if err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s is %v, and the error %v; want %q", query, value, err, says)
		}
	}
}

// An invalid answer is no value.
func TestNoValue(t *testing.T) {
	for name, test := range map[string]struct {
		answer http.HandlerFunc
		want   string
	}{
		"a web page": {
			func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "<html>") },
			"the Prometheus at http://",
		},
		noAnswer: {
			func(_ http.ResponseWriter, r *http.Request) { _, _ = io.Copy(io.Discard, r.Body); <-r.Context().Done() },
			"did not answer within 300ms",
		},
		"no result": {says(http.StatusOK, `{"status":"success","data":{}}`), "the Prometheus at http://"},
		"null": {
			says(http.StatusOK, `{"status":"success","data":{"resultType":"vector","result":[null]}}`),
			"the query up returns nothing",
		},
		"two of null": {
			says(http.StatusOK, `{"status":"success","data":{"resultType":"vector","result":[null,null]}}`),
			"the query up returns nothing",
		},
		"inconsistent": {
			says(http.StatusOK, `{"status":"success","data":{"resultType":"vector","result":7}}`),
			"the Prometheus at http://",
		},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(test.answer)
			defer server.Close()
			settings := Settings{URL: server.URL, Timeout: patience.Limit}
			if name == noAnswer {
				settings.Timeout = 300 * time.Millisecond
			}
			value, _, err := settings.Value(acctest.Bounded(t), "up", 0)
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("it is %v, and the error %v; want %q", value, err, test.want)
			}
		})
	}
	if _, _, err := (Settings{URL: "prometheus:9090"}).Value(t.Context(), "up", 0); err == nil {
		t.Error("there is a value of what is no address")
	}
}

// Prometheus itself limits the age of samples: newer versions take it with the query.
func TestOldestSample(t *testing.T) {
	for oldest, want := range map[time.Duration]string{time.Minute: "1m0s", 1500 * time.Millisecond: "2s", 0: ""} {
		var asked string
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			asked = r.FormValue("lookback_delta")
			says(http.StatusOK, `{"status":"success","data":{"resultType":"scalar","result":[1,"5"]}}`)(w, r)
		}))
		defer server.Close()
		value, _, err := Settings{URL: server.URL, Timeout: patience.Limit}.Value(t.Context(), "5", oldest)
		if err != nil || value != 5 || asked != want {
			t.Errorf("asked for samples of %q at most, and not %q: %v, %v", asked, want, value, err)
		}
	}
}
