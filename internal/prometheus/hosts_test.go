package prometheus

import (
	"slices"
	"testing"

	"github.com/prometheus/common/model"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
)

func TestHostsOf(t *testing.T) {
	h := newHosts(map[string]domain.Host{
		"gpu1": {Address: "ssh://ops@10.0.0.1:22"},
		"gpu2": {Address: "10.0.0.2"},
		"gpu3": {},
		"a":    {Address: "127.0.0.1"},
		"b":    {Address: "127.0.0.1"},
		"10":   {},
	}, model.Vector{{Metric: model.Metric{"instance": "10.0.9.3:9100", "nodename": "gpu3.example.com"}}})
	for name, test := range map[string]struct {
		series model.Metric
		want   []string
	}{
		"by name":                   {model.Metric{"instance": "gpu1:9100"}, []string{"gpu1"}},
		"by full name":              {model.Metric{"instance": "gpu2.example.com:9100"}, []string{"gpu2"}},
		"by address":                {model.Metric{"instance": "10.0.0.1:9100"}, []string{"gpu1"}},
		"by the machine's own name": {model.Metric{"instance": "10.0.9.3:9400"}, []string{"gpu3"}},
		"the clearest label":        {model.Metric{"instance": "gpu1:9100", "host": "gpu2"}, []string{"gpu2"}},
		"a label that names a container": {
			model.Metric{"instance": "gpu1:9400", "Hostname": "4f2a9c"}, []string{"gpu1"},
		},
		"hosts that share a machine":      {model.Metric{"instance": "127.0.0.1:9100"}, []string{"a", "b"}},
		"an address is no name cut short": {model.Metric{"instance": "10.1.1.1:9100"}, nil},
		"another host":                    {model.Metric{"instance": "gpu9:9100"}, nil},
		"none":                            {model.Metric{}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			got := h.of(test.series)
			slices.Sort(got)
			if !slices.Equal(got, test.want) {
				t.Errorf("%v is of %q, want %q", test.series, got, test.want)
			}
		})
	}
}

func TestAddressIn(t *testing.T) {
	for address, want := range map[string]string{
		"gpu1": "gpu1", "gpu1:9100": "gpu1", "10.0.0.1:9100": "10.0.0.1", "[fd00::1]:9100": "fd00::1",
		"ssh://ops@gpu1:22": "gpu1", "fd00::1": "fd00::1", "": "",
	} {
		if got := addressIn(address); got != want {
			t.Errorf("the host in %q is %q, want %q", address, got, want)
		}
	}
}
