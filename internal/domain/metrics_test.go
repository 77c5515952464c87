package domain

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestMetricsAddresses(t *testing.T) {
	hosts := map[string]Host{
		"named":      {Address: "ssh://ops@gpu1:2222"},
		"advertised": {Address: "ssh://ops@gpu2", AdvertiseAddress: "10.0.0.2:22"},
		"six":        {Address: "ssh://ops@[fd00::3]:22"},
		"local":      {Address: "127.0.0.1"},
	}
	for host, want := range map[string][2]string{
		"named":      {"gpu1:9465", "gpu1:9466"},
		"advertised": {"10.0.0.2:9465", "10.0.0.2:9466"},
		"six":        {"[fd00::3]:9465", "[fd00::3]:9466"},
		"local":      {"127.0.0.1:9465", "127.0.0.1:9466"},
	} {
		agent, controller := Cluster{Hosts: hosts, Agent: Agent{MetricsPort: 9465}}.MetricsAddresses(host)
		if got := [2]string{agent, controller}; got != want {
			t.Errorf("%s: %v, want %v", host, got, want)
		}
		if agent, controller = (Cluster{Hosts: hosts}).MetricsAddresses(host); agent+controller != "" {
			t.Errorf("%s answers at %q and %q, though nobody asked for it", host, agent, controller)
		}
	}
}

// TestCheckMetricsPorts checks that a port counts as taken if anything but the cluster's own metrics endpoint listens
// on it.
func TestCheckMetricsPorts(t *testing.T) {
	for name, test := range map[string]struct {
		port, stored int
		listening    []int
		want         []string // of the details
	}{
		"nobody":        {port: 9465, listening: []int{22, 9464, 9467}},
		"not asked for": {listening: []int{22, 9465}},
		"the agent's": {
			port: 9465, listening: []int{9465},
			want: []string{`metrics_port = 9465: on host "gpu1", port 9465 is already in use, but the host's agent`},
		},
		"the controller's": {
			port: 9465, listening: []int{9466}, want: []string{"port 9466 is already in use, but the controller"},
		},
		"both": {
			port: 9465, listening: []int{9465, 9466},
			want: []string{"port 9465 is already in use", "port 9466 is already in use"},
		},
		"the cluster's own": {port: 9465, stored: 9465, listening: []int{9465, 9466}},
		"one of its own": {
			port: 9466, stored: 9465, listening: []int{9465, 9466, 9467},
			want: []string{"port 9467 is already in use, but the controller"},
		},
		"beside its own ones": {port: 9467, stored: 9465, listening: []int{9465, 9466}},
	} {
		var problems Problems
		Agent{
			MetricsPort: test.port,
		}.CheckMetricsPorts(&problems, "gpu1", test.listening, Agent{MetricsPort: test.stored})
		if len(problems) != len(test.want) {
			t.Errorf("%s: %v, want %d problems", name, problems, len(test.want))
			continue
		}
		for i, want := range test.want {
			if p := problems[i]; p.Path.String() != "agent.metrics_port" || !strings.Contains(p.Detail, want) {
				t.Errorf("%s: %v, want one that says %q", name, p, want)
			}
		}
	}
}

func TestAgentValidate(t *testing.T) {
	const allowed = "must be between 1024 and 65534"
	for name, test := range map[string]struct {
		agent Agent
		want  string // of the detail; "" for no problem
	}{
		"none":           {Agent{}, ""},
		"disabled":       {Agent{Disabled: true}, ""},
		"the lowest":     {Agent{MetricsPort: 1024}, ""},
		"the highest":    {Agent{MetricsPort: 65534}, ""},
		"for root alone": {Agent{MetricsPort: 1023}, "metrics_port = 1023: " + allowed},
		"without a next": {Agent{MetricsPort: 65535}, "metrics_port = 65535: " + allowed},
		"below 0":        {Agent{MetricsPort: -1}, allowed},
		"without agents": {
			Agent{MetricsPort: 9465, Disabled: true},
			"metrics_port = 9465: there is hardly anything to serve without agents",
		},
	} {
		cluster := Cluster{
			Name: "lab", Hosts: map[string]Host{"a": {Capacity: Capacity{CPUs: 1, MemoryMiB: 1}}}, Agent: test.agent,
		}
		problems := cluster.Validate()
		if test.want == "" {
			if diff := cmp.Diff(Problems(nil), problems); diff != "" {
				t.Errorf("%s: %s", name, diff)
			}
			continue
		}
		if len(problems) != 1 || problems[0].Path.String() != "agent.metrics_port" ||
			!strings.Contains(problems[0].Detail, test.want) {
			t.Errorf("%s: %v, want %q", name, problems, test.want)
		}
	}
}
