package explain

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
	local := command.Cluster{Engine: "process"}
	for _, c := range []struct {
		args string
		want options
		err  string
	}{
		{"explain mnist/worker", options{cluster: local, group: "mnist", role: "worker", entries: 10}, ""},
		{
			"explain mnist/worker -n 3 --since 2h",
			options{cluster: local, group: "mnist", role: "worker", entries: 3, since: 2 * time.Hour}, "",
		},
		{
			"explain -n 0 mnist/worker --since 2h",
			options{cluster: local, group: "mnist", role: "worker", since: 2 * time.Hour}, "",
		},
		{"explain --json", options{cluster: local, json: true}, ""},
		{
			"explain --json -n 10 mnist/worker",
			options{cluster: local, group: "mnist", role: "worker", entries: 10, json: true}, "",
		},
		{
			"explain --engine swarm --endpoint ssh://ops@gpu1 mnist/worker --cluster lab",
			options{
				cluster: command.Cluster{Engine: "swarm", Endpoint: "ssh://ops@gpu1", Name: "lab"}, group: "mnist",
				role: "worker", entries: 10,
			}, "",
		},
		{"", options{}, "autoscale needs the command explain or train, got []"},
		{"mnist/worker", options{}, `autoscale needs the command explain or train, got ["mnist/worker"]`},
		{"explain", options{}, "explain needs a policy, as GROUP/ROLE"},
		{"explain mnist", options{}, `invalid policy "mnist"`},
		{"explain mnist/", options{}, `invalid policy "mnist/"`},
		{"explain lab/mnist/worker", options{}, `invalid policy "lab/mnist/worker"`},
		{"explain mnist/worker mnist/ps", options{}, `got "mnist/ps" as well as "mnist/worker"`},
		{"explain mnist/worker -n -1", options{}, "-n must be 1 or more, or 0 for all, got -1"},
		{"explain mnist/worker --since -1h", options{}, "--since must be positive, such as 2h, got -1h0m0s"},
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
		if err != nil || !reflect.DeepEqual(got, c.want) {
			t.Errorf("%q: %+v (%v), want %+v", c.args, got, err, c.want)
		}
	}
}
