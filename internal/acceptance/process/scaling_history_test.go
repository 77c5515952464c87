//go:build linux

package process_test

import (
	"math"
	"regexp"
	"testing"
	"time"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/knownvalue"
	"github.com/hashicorp/terraform-plugin-testing/plancheck"
	"github.com/hashicorp/terraform-plugin-testing/statecheck"
	"github.com/hashicorp/terraform-plugin-testing/tfjsonpath"

	"github.com/trainyard/terraform-provider-trainyard/internal/acceptance"
	"github.com/trainyard/terraform-provider-trainyard/internal/autoscale"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
)

// The recorded history of policies can be read, and makes no diff.
func TestAccScalingHistory(t *testing.T) {
	l := newLab(t)
	config := l.config(theCluster, `
data "trainyard_scaling_history" "all" {
  cluster = trainyard_cluster.lab
}
data "trainyard_scaling_history" "some" {
  cluster      = trainyard_cluster.lab
  group        = "job"
  role         = "worker"
  since        = "1h"
  limit        = 1
  only_changes = true
}
`)
	known := func(name, attribute string, check knownvalue.Check) statecheck.StateCheck {
		return statecheck.ExpectKnownValue("data.trainyard_scaling_history."+name, tfjsonpath.New(attribute), check)
	}
	exactly, number := knownvalue.StringExact, knownvalue.Int64Exact
	moment := knownvalue.StringRegexp(regexp.MustCompile(`^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$`))
	put := func(chunk string, data []byte) {
		_, err := l.engine().Put(t.Context(),
			engine.Item{Key: engine.Key{Kind: autoscale.HistoryKind, Name: chunk}, Data: data})
		l.must(err)
	}
	record := func() {
		now := time.Now()
		archive, err := autoscale.OpenArchive(nil, now)
		l.must(err)
		archive.Add(autoscale.NewEntry("other/worker", now.Add(-time.Minute), 1, autoscale.Decision{From: 1, To: 1}))
		archive.Add(autoscale.NewEntry("job/worker", now, 4,
			autoscale.Decision{From: 4, To: 6, Asked: []autoscale.Asked{
				{Name: "cpu", Value: 92.1, Age: 1500 * time.Millisecond, Count: 6, Known: true, Why: "92.1 of 60"},
				{Name: "jobs", Value: math.NaN(), Why: "not measured"},
			}}))
		chunks, _, err := archive.Pack(now)
		l.must(err)
		for _, chunk := range chunks {
			put(chunk.Name, chunk.Data)
		}
	}
	l.test(resource.TestStep{
		Config: config,
		ConfigStateChecks: []statecheck.StateCheck{
			known("all", "entries", knownvalue.ListSizeExact(0)), known("all", "json_lines", exactly("")),
		},
	}, resource.TestStep{
		PreConfig:        record,
		Config:           config,
		ConfigPlanChecks: acceptance.Planned(plancheck.ExpectEmptyPlan()),
		ConfigStateChecks: []statecheck.StateCheck{
			known("all", "entries", knownvalue.ListSizeExact(2)),
			known("some", "entries",
				knownvalue.ListExact([]knownvalue.Check{knownvalue.ObjectExact(map[string]knownvalue.Check{
					"group": exactly("job"),
					"role":  exactly("worker"), "at": moment, "until": moment, "decisions": number(1),
					"from": number(4),
					"to":   number(6), "ready": number(4),
					"metrics": knownvalue.ListExact([]knownvalue.Check{
						knownvalue.ObjectExact(map[string]knownvalue.Check{
							"name": exactly("cpu"), "value": knownvalue.Float64Exact(92.1),
							"age_seconds": knownvalue.Float64Exact(1.5), "count": number(6),
							"why": exactly("92.1 of 60"),
						}),
						knownvalue.ObjectExact(map[string]knownvalue.Check{
							"name": exactly("jobs"), "value": knownvalue.Null(), "age_seconds": knownvalue.Null(),
							"count": knownvalue.Null(), "why": exactly("not measured"),
						}),
					}),
					"guards": knownvalue.ListSizeExact(0), "vertical": knownvalue.ListSizeExact(0),
					"resized": knownvalue.Null(), "limits": knownvalue.ListSizeExact(0),
					"why":         exactly("cpu: 92.1 of 60; jobs: not measured"),
					"outcome":     exactly("done"),
					"outcome_why": knownvalue.Null(), "change_id": knownvalue.Null(),
				})})),
			known("some", "json_lines",
				knownvalue.StringRegexp(regexp.MustCompile(`^\{"policy":"job/worker",.*"outcome":"done",.*\}\n$`))),
		},
	}, resource.TestStep{
		PreConfig:        func() { put("9", []byte("nothing that can be read")) },
		Config:           config,
		ConfigPlanChecks: acceptance.Planned(plancheck.ExpectEmptyPlan()),
		ConfigStateChecks: []statecheck.StateCheck{
			known("all", "entries", knownvalue.ListSizeExact(2)), known("some", "entries", knownvalue.ListSizeExact(1)),
		},
	})
}
