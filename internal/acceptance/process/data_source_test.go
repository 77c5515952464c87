//go:build linux

package process_test

import (
	"fmt"
	"maps"
	"regexp"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/knownvalue"
	"github.com/hashicorp/terraform-plugin-testing/plancheck"
	"github.com/hashicorp/terraform-plugin-testing/statecheck"
	"github.com/hashicorp/terraform-plugin-testing/tfjsonpath"

	"github.com/trainyard/terraform-provider-trainyard/internal/acceptance"
	"github.com/trainyard/terraform-provider-trainyard/internal/agent/telemetry"
)

// The data sources show what changes by itself: here a running parameter server, and a worker that has ended.
func TestAccDataSources(t *testing.T) {
	l := newLab(t)
	cpus, memory, err := telemetry.Capacity()
	l.must(err)
	logs := func(name, attributes string) string {
		return fmt.Sprintf(`
data "trainyard_logs" %q {
  cluster    = trainyard_cluster.lab
  member     = "job-worker-0"
  depends_on = [trainyard_group.job]
  %s
}`, name, attributes)
	}
	config := l.job(`
  framework = "tensorflow_v1"
  roles = {
    ps     = { replicas = 1, port = local.port, command = [local.member, "wait"] }
    worker = { replicas = 1, port = local.port + 10, command = [local.member, "print:one", "print:two", "print:three"] }
  }
  completion = { when = "all", roles = ["worker"], stop_rest = false }
  wait_for   = "completed"`) + `
data "trainyard_cluster" "lab" {
  name       = trainyard_cluster.lab.name
  depends_on = [trainyard_group.job]
}
data "trainyard_group" "job" {
  cluster    = trainyard_cluster.lab
  name       = "job"
  depends_on = [trainyard_group.job]
}
data "trainyard_utilisation" "now" {
  cluster    = trainyard_cluster.lab
  window     = "30s"
  depends_on = [trainyard_group.job]
}
data "trainyard_utilisation" "some" {
  cluster    = trainyard_cluster.lab
  filter     = { hosts = ["local"], groups = ["job", "other"], roles = ["ps"] }
  depends_on = [trainyard_group.job]
}
data "trainyard_utilisation" "none" {
  cluster    = trainyard_cluster.lab
  filter     = { hosts = ["remote"] }
  depends_on = [trainyard_group.job]
}
` + logs("all", "") + logs("tail",
		"tail = 2") + logs("recent", `since = "1h"`) + logs("future", `since = "2100-01-01T00:00:00Z"`)
	moment := knownvalue.StringRegexp(regexp.MustCompile(`^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$`))
	known := func(source, name string, check knownvalue.Check) statecheck.StateCheck {
		return statecheck.ExpectKnownValue("data.trainyard_"+source, tfjsonpath.New(name), check)
	}
	object, exactly := knownvalue.ObjectExact, knownvalue.StringExact
	used := knownvalue.Float64Func(func(v float64) error {
		if v < 0 {
			return fmt.Errorf("%v is below 0", v)
		}
		return nil
	})
	resident := knownvalue.Float64Func(func(v float64) error {
		if v <= 0 || v > float64(memory) {
			return fmt.Errorf("%v MiB is not between 0 and %d", v, memory)
		}
		return nil
	})
	member := func(
		role string, index int, address, state string, exitCode, finished knownvalue.Check,
	) knownvalue.Check {
		return object(map[string]knownvalue.Check{
			"role": exactly(role), "index": knownvalue.Int64Exact(int64(index)), "host": exactly("local"),
			"gpus": textList(), "address": exactly(address),
			"state": exactly(state), "restarts": knownvalue.Int64Exact(0), "exit_code": exitCode,
			"started_at": moment, "finished_at": finished, "last_error": knownvalue.Null(),
		})
	}
	young := knownvalue.Float64Func(func(v float64) error {
		if v < 0 || v > 60 {
			return fmt.Errorf("%v seconds is no age of what has just been measured", v)
		}
		return nil
	})
	// utilisation is an object with these values, last and over the window, and more.
	utilisation := func(values, more map[string]knownvalue.Check) knownvalue.Check {
		all := maps.Clone(values)
		for _, statistic := range []string{"mean", "max", "p95"} {
			all[statistic] = object(values)
		}
		maps.Copy(all, more)
		return object(all)
	}
	runs := map[string]knownvalue.Check{
		"cpus_used": used, "memory_used_mib": resident, "gpu_memory_used_mib": knownvalue.Float64Exact(0),
		"received_bytes_per_second": knownvalue.Null(), "sent_bytes_per_second": knownvalue.Null(),
	}
	ended := map[string]knownvalue.Check{
		"cpus_used": knownvalue.Null(), "memory_used_mib": knownvalue.Null(), "gpu_memory_used_mib": knownvalue.Null(),
		"received_bytes_per_second": knownvalue.Null(), "sent_bytes_per_second": knownvalue.Null(),
	}
	uncounted := knownvalue.StringRegexp(acceptance.Says("it shares the network of its host"))
	l.test(resource.TestStep{
		Config: config,
		ConfigStateChecks: []statecheck.StateCheck{
			known("cluster.lab", "id", exactly("lab")),
			known("cluster.lab", "engine", exactly("process")),
			known("cluster.lab", "hosts", knownvalue.MapExact(map[string]knownvalue.Check{
				"local": hostOf("127.0.0.1", knownvalue.Null(), cpus, memory),
			})),
			known("cluster.lab", "groups", knownvalue.ListExact([]knownvalue.Check{exactly("job")})),

			known("group.job", "id", exactly("lab/job")),
			known("group.job", "framework", exactly("tensorflow_v1")),
			known("group.job", "phase", exactly("completed")),
			known("group.job", "reason", knownvalue.Null()),
			known("group.job", "members", knownvalue.MapExact(map[string]knownvalue.Check{
				"job-ps-0":     member("ps", 0, l.address(0), "running", knownvalue.Null(), knownvalue.Null()),
				"job-worker-0": member("worker", 0, l.address(10), "completed", knownvalue.Int64Exact(0), moment),
			})),

			known("logs.all", "lines",
				knownvalue.ListExact([]knownvalue.Check{exactly("one"), exactly("two"), exactly("three")})),
			known("logs.tail", "lines", knownvalue.ListExact([]knownvalue.Check{exactly("two"), exactly("three")})),
			known("logs.recent", "lines", knownvalue.ListSizeExact(3)),
			known("logs.future", "lines", knownvalue.ListSizeExact(0)),

			known("utilisation.now", "hosts",
				knownvalue.MapExact(map[string]knownvalue.Check{"local": utilisation(map[string]knownvalue.Check{
					"cpus_used":       used,
					"memory_used_mib": resident, "load": used, "disk_used_mib": used, "received_bytes_per_second": used,
					"sent_bytes_per_second": used,
				}, map[string]knownvalue.Check{
					"cpus": knownvalue.NotNull(), "memory_mib": knownvalue.Int64Exact(memory),
					"disk_mib":   knownvalue.NotNull(),
					"sampled_at": moment, "age_seconds": young, "reason": knownvalue.Null(),
					"gpus_reason": knownvalue.Null(),
				})})),
			known("utilisation.now", "gpus", knownvalue.MapSizeExact(0)),
			known("utilisation.now", "groups",
				knownvalue.MapExact(map[string]knownvalue.Check{"job": utilisation(runs, map[string]knownvalue.Check{
					"sampled_at": moment, "age_seconds": young, "reason": knownvalue.Null(),
					"traffic_reason": uncounted,
					"roles": knownvalue.MapExact(map[string]knownvalue.Check{
						"ps": utilisation(runs, map[string]knownvalue.Check{
							"sampled_at": moment, "age_seconds": young, "reason": knownvalue.Null(),
							"traffic_reason": uncounted,
						}),
						"worker": utilisation(ended, map[string]knownvalue.Check{
							"sampled_at": knownvalue.Null(), "age_seconds": knownvalue.Null(),
							"reason":         exactly("no member is running"),
							"traffic_reason": exactly("no member is running"),
						}),
					}),
				})})),
			known("utilisation.now", "members", knownvalue.MapExact(map[string]knownvalue.Check{
				"job-ps-0": utilisation(runs, map[string]knownvalue.Check{
					"group": exactly("job"), "role": exactly("ps"), "host": exactly("local"), "sampled_at": moment,
					"age_seconds": young, "reason": knownvalue.Null(),
					"traffic_reason": uncounted,
				}),
				"job-worker-0": utilisation(ended, map[string]knownvalue.Check{
					"group": exactly("job"), "role": exactly("worker"), "host": exactly("local"),
					"sampled_at": knownvalue.Null(), "age_seconds": knownvalue.Null(),
					"reason":         exactly("no process: the member is completed"),
					"traffic_reason": exactly("no process: the member is completed"),
				}),
			})),

			known("utilisation.some", "hosts", knownvalue.MapSizeExact(1)),
			known("utilisation.some", "groups", knownvalue.MapPartial(map[string]knownvalue.Check{
				"job": knownvalue.ObjectPartial(map[string]knownvalue.Check{
					"roles": knownvalue.MapSizeExact(1),
				}),
			})),
			known("utilisation.some", "members", knownvalue.MapSizeExact(1)),
			known("utilisation.none", "hosts", knownvalue.MapSizeExact(0)),
			known("utilisation.none", "members", knownvalue.MapSizeExact(0)),
		},
	}, resource.TestStep{
		// What they show has changed since, without a diff.
		PreConfig:        func() { l.kill("job-ps-0") },
		Config:           config,
		ConfigPlanChecks: acceptance.Planned(plancheck.ExpectEmptyPlan()),
		ConfigStateChecks: []statecheck.StateCheck{statecheck.ExpectKnownValue("data.trainyard_group.job",
			tfjsonpath.New("members").AtMapKey("job-ps-0").AtMapKey("exit_code"), knownvalue.Int64Exact(137))},
	})
}

// A data source's error names what it can't find.
func TestAccDataSourcesFindNothing(t *testing.T) {
	l := newLab(t)
	steps := []resource.TestStep{{Config: l.config(theCluster)}}
	for _, test := range []struct{ source, attributes, what string }{
		{"cluster", `name = "nowhere"`, `There is no cluster "nowhere"`},
		{"group", `name = "nothing"`, `There is no group "nothing" in cluster "lab"`},
		{"logs", `member = "nobody-worker-0"`, `There is no log of member "nobody-worker-0" in cluster "lab"`},
		{"logs", "member = \"x-y-0\"\n since = \"yesterday\"", `"yesterday" is neither a time in RFC 3339`},
		{"utilisation", `cluster = { name = "nowhere" }`, `There is no utilisation of cluster "nowhere"`},
		{"scaling_history", `cluster = { name = "nowhere" }`, `There is no history of cluster "nowhere"`},
	} {
		reference := "cluster = trainyard_cluster.lab"
		if test.source == "cluster" || strings.Contains(test.attributes, "cluster = ") {
			reference = ""
		}
		steps = append(steps, resource.TestStep{
			PlanOnly: true,
			Config: l.config(theCluster,
				fmt.Sprintf("data \"trainyard_%s\" \"it\" {\n  %s\n  %s\n}", test.source, test.attributes, reference)),
			ExpectError: acceptance.Says(test.what),
		})
	}
	l.test(steps...)
}

// The functions work without a cluster.
func TestAccFunctions(t *testing.T) {
	l := newLab(t)
	output := func(expression string) string { return l.config("output \"it\" {\n  value = " + expression + "\n}") }
	l.test(
		resource.TestStep{
			Config: output(
				`provider::trainyard::tf_config({ worker = ["b:1", "c:1"], ps = ["a:1"], evaluator = ["d:1"] }, "worker", 1)`,
			),
			ConfigStateChecks: []statecheck.StateCheck{statecheck.ExpectKnownOutputValue("it",
				knownvalue.StringExact(
					`{"cluster":{"ps":["a:1"],"worker":["b:1","c:1"]},"task":{"type":"worker","index":1}}`,
				))},
		},
		resource.TestStep{
			Config: output(`provider::trainyard::ps_bandwidth_gbps(250e6, 4, 10, 2, 1)`),
			ConfigStateChecks: []statecheck.StateCheck{
				statecheck.ExpectKnownOutputValue("it", knownvalue.Float64Exact(40)),
			},
		},
		resource.TestStep{
			Config: output(`provider::trainyard::tf_config({ worker = ["b:1"] }, "chief", 0)`),
			ExpectError: acceptance.Says(
				`Invalid value for "type" parameter: the cluster has no task type "chief"; it has ["worker"]`,
			),
		},
		resource.TestStep{
			Config:      output(`provider::trainyard::ps_bandwidth_gbps(250e6, 4, 10, 0, 1)`),
			ExpectError: acceptance.Says(`Invalid value for "ps" parameter: ps is 0; it must be above 0`),
		},
	)
}
