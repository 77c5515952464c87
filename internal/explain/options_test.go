package explain

import (
	"strings"
	"testing"
	"time"

	"github.com/trainyard/terraform-provider-trainyard/internal/command"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
)

func TestParse(t *testing.T) {
	engines := engine.Registry{"process": {Endpoint: "state directory", Default: true}, "swarm": {Endpoint: "address"}}
	local := command.Cluster{Engine: "process"}
	for _, c := range []struct {
		args string
		want options
		err  string
	}{
		{"explain mnist/worker", options{cluster: local, group: "mnist", role: "worker", entries: 10}, ""},
		{"explain mnist/worker -n 3 --since 2h", options{cluster: local, group: "mnist", role: "worker", entries: 3, since: 2 * time.Hour}, ""},
		{"explain -n 0 mnist/worker --since 2h", options{cluster: local, group: "mnist", role: "worker", since: 2 * time.Hour}, ""},
		{"explain --json", options{cluster: local, json: true}, ""},
		{"explain --json -n 10 mnist/worker", options{cluster: local, group: "mnist", role: "worker", entries: 10, json: true}, ""},
		{
			"explain --engine swarm --endpoint ssh://ops@gpu1 mnist/worker --cluster lab",
			options{cluster: command.Cluster{Engine: "swarm", Endpoint: "ssh://ops@gpu1", Name: "lab"}, group: "mnist", role: "worker", entries: 10}, "",
		},
		{"", options{}, "autoscale has two commands, explain and train, and was given []"},
		{"mnist/worker", options{}, `autoscale has two commands, explain and train, and was given ["mnist/worker"]`},
		{"explain", options{}, "explain needs the policy that it is about, as GROUP/ROLE"},
		{"explain mnist", options{}, `"mnist" is no policy`},
		{"explain mnist/", options{}, `"mnist/" is no policy`},
		{"explain lab/mnist/worker", options{}, `"lab/mnist/worker" is no policy`},
		{"explain mnist/worker mnist/ps", options{}, `was given "mnist/ps" as well as "mnist/worker"`},
		{"explain mnist/worker -n -1", options{}, "-n -1 is no number of entries"},
		{"explain mnist/worker --since -1h", options{}, "--since -1h0m0s is ahead"},
		{"explain mnist/worker --since today", options{}, "invalid value"},
		{"--help", options{}, "help requested"},
		{"explain mnist/worker -h", options{}, "help requested"},
	} {
		got, err := parse(strings.Fields(c.args), engines)
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
}
