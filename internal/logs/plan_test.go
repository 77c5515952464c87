package logs

import (
	"bytes"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
)

// group returns the change of a group as terraform show -json prints it.
func group(name, cluster, triggers string) string {
	return `{"address":"module.a.trainyard_group.` + name +
		`","mode":"managed","type":"trainyard_group","change":{"actions":["update"],"after":{"name":"` +
		name + `","cluster":` + cluster + `,"triggers":` + triggers + `}}}`
}

// changed returns the same with these actions, and with these triggers before the apply and those of run 7 after it.
func changed(actions, before string) string {
	const lab = `{"name":"lab","engine":"swarm","endpoint":"ssh://ops@gpu1"}`
	return strings.Replace(group("mnist", lab, `{"run":"7"}`), `"actions":["update"]`, `"actions":[`+actions+
		`],"before":{"name":"mnist","cluster":`+lab+`,"triggers":`+before+`}`, 1)
}

func TestTargetOf(t *testing.T) {
	const lab = `{"name":"lab","engine":"swarm","endpoint":"ssh://ops@gpu1"}`
	// unknown is the change of a group of a cluster whose endpoint is unknown.
	unknown := func(engine string) string {
		known := group("mnist", `{"name":"lab","engine":"`+engine+`"}`, `{"run":"7"}`)
		return strings.TrimSuffix(known, "}}") + `,"after_unknown":{"cluster":{"endpoint":true}}}}`
	}
	// completing is a change to a group with this completion rule, of which this is unknown.
	completing := func(rule, unknown string) string {
		known := group("mnist", lab, `{"run":"7"},"completion":`+rule)
		return strings.TrimSuffix(known, "}}") + `,"after_unknown":` + unknown + `}}`
	}
	run7 := target{
		domain.ClusterRef{Name: "lab", Engine: "swarm", Endpoint: "ssh://ops@gpu1"}, "mnist",
		map[string]string{"run": "7"},
	}
	const kept = "module.a.trainyard_group.mnist changes, but none of its triggers that are known before apply do, " +
		"so its next run can't be told apart from its last: add one that changes with each run"
	engines := engine.Registry{"process": {Default: true}, "swarm": {Schemes: []string{"ssh"}}}
	const deleted = `{"address":"trainyard_group.old","mode":"managed","type":"trainyard_group","change":{"actions":["delete"],"after":null,"after_unknown":false}}`
	const data = `{"address":"data.trainyard_group.mnist","mode":"data","type":"trainyard_group","change":{"after":{"name":"other"}}}`
	const foreign = `{"address":"aws_ecs_service.a","mode":"managed","type":"aws_ecs_service","change":{"after":{"cluster":"arn"}}}`
	const cluster = `{"address":"trainyard_cluster.lab","mode":"managed","type":"trainyard_cluster","change":{"after":{"name":"lab"}}}`
	for name, c := range map[string]struct {
		changes []string
		group   string
		want    target
		refused string
	}{
		"the only one": {
			changes: []string{cluster, deleted, data, foreign, group("mnist", lab, `{"run":"7"}`)},
			want:    run7,
		},
		"one of two": {
			changes: []string{group("mnist", lab, `{"run":"7"}`), group("other", `{"name":"lab"}`, `{"run":"8"}`)},
			group:   "other",
			want:    target{domain.ClusterRef{Name: "lab", Engine: "process"}, "other", map[string]string{"run": "8"}},
		},
		"other triggers": {changes: []string{changed(`"update"`, `{"run":"6"}`)}, want: run7},
		"one more trigger": {
			changes: []string{changed(`"update"`, `{"commit":"abc"}`)}, want: run7,
		},
		"no change": {changes: []string{changed(`"no-op"`, `{"run":"7"}`)}, want: run7},
		"the same triggers": {
			changes: []string{changed(`"update"`, `{"run":"7"}`)}, refused: kept,
		},
		"the same triggers, and unknown ones": {
			changes: []string{changed(`"update"`, `{"run":"7","image":"a"}`)}, refused: kept,
		},
		"replaced with the same triggers": {
			changes: []string{changed(`"delete","create"`, `{"run":"7"}`)}, refused: kept,
		},
		"renamed with the same triggers": {
			changes: []string{strings.Replace(changed(`"delete","create"`, `{"run":"7"}`),
				`"before":{"name":"mnist"`, `"before":{"name":"digits"`, 1)}, want: run7,
		},
		"a service": {
			changes: []string{completing(`{"when":"never","deadline":null}`, `{"completion":{}}`)},
			refused: "module.a.trainyard_group.mnist never completes",
		},
		"a service with a deadline": {
			changes: []string{completing(`{"when":"never","deadline":"1h"}`, "{}")}, want: run7,
		},
		"a service with an unknown deadline": {
			changes: []string{completing(`{"when":"never"}`, `{"completion":{"deadline":true}}`)}, want: run7,
		},
		"an unknown completion": {changes: []string{completing("null", `{"completion":true}`)}, want: run7},
		"two, one of which has no triggers": {
			changes: []string{group("mnist", lab, "null"), group("b", lab, `{"run":"7"}`)},
			refused: "choose one of b, mnist",
		},
		"two": {
			changes: []string{group("mnist", lab, `{"run":"7"}`), group("b", lab, `{"run":"7"}`)},
			refused: "choose one of b, mnist",
		},
		"another": {
			changes: []string{group("mnist", lab, `{"run":"7"}`)}, group: "b",
			refused: `no group "b"; its groups are mnist`,
		},
		"none": {changes: []string{cluster, deleted}, refused: "it has no trainyard_group"},
		"no triggers": {
			changes: []string{group("mnist", lab, "null")},
			refused: "module.a.trainyard_group.mnist has no triggers that are known",
		},
		"unknown triggers": {changes: []string{group("mnist", lab, "{}")}, refused: "has no triggers that are known"},
		"unknown cluster": {
			changes: []string{group("mnist", "{}", `{"run":"7"}`)},
			refused: "the names of module.a.trainyard_group.mnist and its cluster are not known",
		},
		"unknown endpoint": {
			changes: []string{unknown("swarm")},
			refused: "the endpoint of the cluster of module.a.trainyard_group.mnist is not known",
		},
		"unknown, as there is none": {
			changes: []string{unknown("process")},
			want:    target{domain.ClusterRef{Name: "lab", Engine: "process"}, "mnist", map[string]string{"run": "7"}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			text := `{"format_version":"1.2","resource_changes":[` + strings.Join(c.changes, ",") + `]}`
			got, err := targetOf(strings.NewReader(text), c.group, engines)
			if c.refused != "" {
				if err == nil || !strings.Contains(err.Error(), c.refused) {
					t.Fatalf("%v, which does not say %q", err, c.refused)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, got, cmp.AllowUnexported(target{})); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
	for _, text := range []string{"", "{}", "Terraform will perform the following actions"} {
		if _, err := targetOf(strings.NewReader(text), "", engines); err == nil ||
			!strings.Contains(err.Error(), "not the output of terraform show -json") {
			t.Errorf("of %q: %v", text, err)
		}
	}
}

func FuzzTargetOf(f *testing.F) {
	f.Add(`{"format_version":"1.2","resource_changes":[` + group("mnist", `{"name":"lab"}`, `{"run":"7"}`) + `]}`)
	f.Fuzz(func(t *testing.T, text string) {
		found, err := targetOf(strings.NewReader(text), "", engine.Registry{"process": {Default: true}})
		if err == nil && (found.group == "" || found.cluster.Name == "" || len(found.triggers) == 0) {
			t.Errorf("%+v is found", found)
		}
	})
}

// TestPlannedOverSSH: the cluster of a plan is reached as the flags say.
func TestPlannedOverSSH(t *testing.T) {
	var used engine.Settings
	engines := engine.Registry{"systemd": {
		Open: func(_ domain.ClusterRef, settings engine.Settings) (engine.Engine, error) {
			used = settings
			return &fake{}, nil
		},
	}}
	in := `{"format_version":"1.2","resource_changes":[` +
		group("mnist", `{"name":"lab","engine":"systemd","endpoint":"ssh://ops@gpu1"}`, `{"run":"7"}`) + `]}`
	var out bytes.Buffer
	args := []string{"--plan", "-", "--jump-host", "ops@bastion"}
	if err := Run(t.Context(), args, engines, strings.NewReader(in), &out); err != nil {
		t.Fatal(err)
	}
	want := engine.Settings{SSH: engine.SSHCredentials{JumpHost: "ops@bastion"}}
	if diff := cmp.Diff(want, used); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
