package provider

import (
	"strings"
	"testing"

	"github.com/trainyard/terraform-provider-trainyard/internal/prometheus"
	"github.com/trainyard/terraform-provider-trainyard/internal/provider/resourcekit"
)

// Credentials only go to the host that they are for, over https, or unencrypted if that is allowed.
func TestExpandPrometheus(t *testing.T) {
	token := "verysecret"
	logins := map[string]prometheus.Credentials{
		"prometheus:9090": prometheusLoginModel{BearerToken: &token}.expand(),
		"open:9090":       prometheusLoginModel{BearerToken: &token, Insecure: new(true)}.expand(),
	}
	for address, want := range map[string]struct{ token, err string }{
		"https://prometheus:9090": {token: token},
		"http://open:9090":        {token: token},
		"http://prometheus":       {},
		"http://prometheus:9090": {
			err: "prometheus.url: the credentials of the provider's block prometheus would be sent to http://prometheus:9090 without encryption",
		},
		"prometheus:9090": {err: "prometheus.url: invalid Prometheus URL"},
	} {
		settings, err := (&resourcekit.PrometheusModel{URL: address}).Expand(logins)
		if string(settings.BearerToken) != want.token || (err == nil) != (want.err == "") ||
			err != nil && !strings.HasPrefix(err.Error(), want.err) {
			t.Errorf("%s: token %q and error %v, want %+v", address, settings.BearerToken, err, want)
		}
	}
}
