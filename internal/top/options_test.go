package top

import (
	"strings"
	"testing"
	"time"

	"github.com/trainyard/terraform-provider-trainyard/internal/command"
)

func TestParse(t *testing.T) {
	for _, c := range []struct {
		args string
		want options
		err  string
	}{
		{"", options{cluster: command.Cluster{Engine: "process"}, interval: 2 * time.Second}, ""},
		{"--state-dir /srv/state --cluster lab --interval 1m --once", options{cluster: command.Cluster{Engine: "process", StateDir: "/srv/state", Name: "lab"}, interval: time.Minute, once: true}, ""},
		{"--docker-host ssh://ops@gpu1", options{cluster: command.Cluster{Engine: "swarm", DockerHost: "ssh://ops@gpu1"}, interval: 2 * time.Second}, ""},
		{"--docker-host=", options{cluster: command.Cluster{Engine: "swarm"}, interval: 2 * time.Second}, ""},
		{"--docker-host= --state-dir=", options{}, "not both"},
		{"--interval 0.5s", options{}, "1s or more"},
		{"--interval fast", options{}, "invalid value"},
		{"lab", options{}, `"lab"`},
	} {
		got, err := parse(strings.Fields(c.args))
		if c.err != "" {
			if err == nil || !strings.Contains(err.Error(), c.err) {
				t.Errorf("%q: %v does not say %q", c.args, err, c.err)
			}
			continue
		}
		if err != nil || got != c.want {
			t.Errorf("%q: %+v (%v), want %+v", c.args, got, err, c.want)
		}
	}
	if got, err := parse([]string{"--state-dir", "state"}); err != nil || !strings.HasSuffix(got.cluster.StateDir, "/internal/top/state") {
		t.Errorf("a relative state directory: %+v (%v)", got, err)
	}
}
