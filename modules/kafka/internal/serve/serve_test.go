package serve_test

import (
	"errors"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/trainyard/terraform-provider-trainyard/modules/kafka/internal/serve"
)

func TestListen(t *testing.T) {
	for address, want := range map[string]string{
		"": ":9090", "kafka-rebalancer-0:20003": ":20003", "[::1]:7": ":7", "nonsense": ":9090",
	} {
		t.Setenv("TRAINYARD_ADDRESS", address)
		if got := serve.Listen(); got != want {
			t.Errorf("as %q, it listens at %q, want %q", address, got, want)
		}
	}
}

func TestClient(t *testing.T) {
	for _, bootstrap := range []string{"", "kafka", "kafka:9092,", ":9092", "kafka:"} {
		if _, err := serve.Client(bootstrap); err == nil ||
			!strings.Contains(err.Error(), "brokers as host:port, got ") {
			t.Errorf("%q: %v", bootstrap, err)
		}
	}
	client, err := serve.Client("a:1,[::1]:2")
	if err != nil {
		t.Fatal(err)
	}
	client.Close()
}

func TestFail(t *testing.T) {
	for want, test := range map[string]struct {
		err    error
		status int
		after  string
	}{
		`{"title":"Conflict","status":409,"detail":"3 of 2"}`: {
			serve.Problemf(409, "%d of %d", 3, 2), 409, "",
		},
		`{"title":"Service Unavailable","status":503,"detail":"nobody there"}`: {errors.New("nobody there"), 503, "2"},
	} {
		w := httptest.NewRecorder()
		serve.Fail(w, test.err)
		if got := strings.TrimSpace(w.Body.String()); got != want || w.Code != test.status ||
			w.Header().Get("Retry-After") != test.after {
			t.Errorf("%v is answered %d %s, %v", test.err, w.Code, got, w.Header())
		}
	}
}
