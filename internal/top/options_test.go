package top

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/trainyard/terraform-provider-trainyard/internal/command"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
)

func TestParse(t *testing.T) {
	engines := engine.Registry{"process": {Endpoint: "state directory", Default: true}, "swarm": {Endpoint: "address"}}
	for _, c := range []struct {
		args string
		want options
		err  string
	}{
		{"", options{cluster: command.Cluster{Engine: "process"}, interval: 2 * time.Second}, ""},
		{"--endpoint /srv/state --cluster lab --interval 1m --once", options{
			cluster: command.Cluster{Engine: "process", Endpoint: "/srv/state", Name: "lab"}, interval: time.Minute,
			once: true,
		}, ""},
		{
			"--engine swarm --endpoint ssh://ops@gpu1",
			options{cluster: command.Cluster{Engine: "swarm", Endpoint: "ssh://ops@gpu1"}, interval: 2 * time.Second},
			"",
		},
		{"--engine swarm", options{cluster: command.Cluster{Engine: "swarm"}, interval: 2 * time.Second}, ""},
		{"--interval 0.5s", options{}, "1s or more"},
		{"--interval fast", options{}, "invalid value"},
		{"lab", options{}, `"lab"`},
	} {
		got, err := parse(strings.Fields(c.args), engines)
		if c.err != "" {
			if err == nil || !strings.Contains(err.Error(), c.err) {
				t.Errorf("%q: %v does not say %q", c.args, err, c.err)
			}
			continue
		}
		if err != nil || !reflect.DeepEqual(got, c.want) {
			t.Errorf("%q: %+v (%v), want %+v", c.args, got, err, c.want)
		}
	}
}
