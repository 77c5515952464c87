//go:build linux

package swarm_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"text/tabwriter"

	dockerswarm "github.com/docker/docker/api/types/swarm"
	"github.com/google/go-cmp/cmp"
	tfjson "github.com/hashicorp/terraform-json"

	"github.com/trainyard/terraform-provider-trainyard/internal/acceptance"
	"github.com/trainyard/terraform-provider-trainyard/internal/acctest"
)

// swarmWorkspace is a lab with a workspace in which the whole provider runs, as for users.
type swarmWorkspace struct {
	*swarmLab
	*acctest.Workspace
}

// newSwarmWorkspace returns an empty workspace for a lab. At the end of the test everything that it manages is
// destroyed.
func newSwarmWorkspace(l *swarmLab) *swarmWorkspace {
	l.Helper()
	w := &swarmWorkspace{l, acctest.NewWorkspace(l, acctest.Build(l, acctest.Provider))}
	l.Cleanup(l.explainIfFailed) // before everything is destroyed
	return w
}

// configure writes a configuration of these parts.
func (w *swarmWorkspace) configure(parts ...string) {
	w.swarmLab.Helper()
	w.Write("main.tf", `
terraform {
  required_providers {
    trainyard = { source = "trainyard/trainyard" }
  }
}
`+strings.Join(parts, "\n"))
}

// exit runs Terraform and returns its exit code and output.
func (w *swarmWorkspace) exit(args ...string) (code int, output string) {
	w.swarmLab.Helper()
	output, err := w.Run(args...)
	exit, ended := errors.AsType[*exec.ExitError](err)
	if err != nil && !ended {
		w.swarmLab.Fatalf("terraform %s: %v\n%s", strings.Join(args, " "), err, output)
	}
	if ended {
		code = exit.ExitCode()
	}
	return code, output
}

// plan plans into a file, and returns the changes.
func (w *swarmWorkspace) plan(file string, wantCode int) *tfjson.Plan {
	w.swarmLab.Helper()
	if code, output := w.exit("plan", "-detailed-exitcode", "-out="+file); code != wantCode {
		w.swarmLab.Fatalf("plan -detailed-exitcode ends with %d, want %d\n%s", code, wantCode, output)
	}
	var plan tfjson.Plan
	w.must(json.Unmarshal([]byte(w.Must("show", "-json", file)), &plan))
	return &plan
}

// difference returns the changes of a plan, one per line: an attribute of a resource with its value before and after.
// Attributes that are unknown until the apply are shown as such.
func difference(plan *tfjson.Plan) []string {
	var lines []string
	for _, r := range plan.ResourceChanges {
		if r.Mode != tfjson.ManagedResourceMode || r.Change.Actions.NoOp() {
			continue
		}
		flatten := func(value any) map[string]string {
			flat := map[string]string{}
			flattenJSON(flat, strings.TrimPrefix(r.Address, "trainyard_"), value)
			return flat
		}
		before, after, unknown := flatten(r.Change.Before), flatten(r.Change.After), flatten(r.Change.AfterUnknown)
		for at, is := range unknown {
			if is == "true" {
				after[at] = "(known after apply)"
			}
		}
		all := map[string]bool{}
		for _, side := range []map[string]string{before, after} {
			for at := range side {
				all[at] = true
			}
		}
		for at := range all {
			if before[at] != after[at] {
				lines = append(lines, fmt.Sprintf("%s: %s → %s", at, orNone(before[at]), orNone(after[at])))
			}
		}
	}
	slices.Sort(lines)
	return lines
}

func orNone(text string) string {
	if text == "" {
		return "none"
	}
	return text
}

// flattenJSON stores the values within a value, by path.
func flattenJSON(flat map[string]string, at string, value any) {
	switch v := value.(type) {
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			flattenJSON(flat, at+"."+key, v[key])
		}
	case []any:
		for i, element := range v {
			flattenJSON(flat, fmt.Sprintf("%s[%d]", at, i), element)
		}
	case nil:
	default:
		flat[at] = fmt.Sprint(v)
	}
}

// drift is a change by somebody else, and its expected consequences.
type drift struct {
	what string
	// by makes the change, and returns when it has taken effect.
	by func()
	// shown is what the plan shows, see [difference]; empty if there is nothing to repair.
	shown []string
	// mended are the members that an apply then changes, see [swarmLab.changes]. until reports whether that is done, if
	// the cluster's controller does it.
	mended []string
	until  func() bool
	// as checks other visible consequences.
	as func() error
}

// table collects the consequences of changes by others, one per row.
type table struct{ rows [][]string }

// add adds a change, with the plan's exit code and the result of a refresh-only plan.
func (t *table) add(what string, code int, refresh string, mended, shown []string) {
	row := []string{what, strconv.Itoa(code), refresh, strings.Join(mended, " "), "nothing"}
	for _, line := range shown {
		row[4] = line
		t.rows = append(t.rows, row)
		row = make([]string, len(row))
	}
	if len(shown) == 0 {
		t.rows = append(t.rows, row)
	}
}

// log logs the table.
func (t *table) log(l *swarmLab) {
	l.Helper()
	var text strings.Builder
	columns := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	for _, row := range append([][]string{{"by somebody else", "plan", "refresh-only", "changed by apply", "shown"}},
		t.rows...) {
		fmt.Fprintln(columns, strings.Join(row, "\t"))
	}
	l.must(columns.Flush())
	l.Log("\n" + text.String())
}

// meet makes a change happen, checks its consequences, and adds a row to the table.
func (w *swarmWorkspace) meet(d drift, t *table) {
	l := w.swarmLab
	l.Helper()
	d.by()
	l.seen = l.tasks()
	code := 0
	if len(d.shown) > 0 {
		code = 2
	}
	file := filepath.Join(w.Dir, "tfplan")
	plan := w.plan(file, code)
	if diff := cmp.Diff(d.shown, difference(plan)); diff != "" {
		l.Errorf("%s: the plan shows (-want +got)\n%s", d.what, diff)
	}
	refresh, output := w.exit("plan", "-refresh-only", "-detailed-exitcode")
	none := strings.Contains(output, "No changes.")
	// In its exit code, Terraform counts a number that was read again as changed, whatever its value:
	// https://github.com/hashicorp/terraform/issues/36403
	if none != (code == 0) || code != refresh && (code != 0 || refresh != 2) {
		l.Errorf("%s: plan -refresh-only -detailed-exitcode ends with %d, want %d\n%s", d.what, refresh, code, output)
	}
	if d.as != nil {
		if err := d.as(); err != nil {
			l.Errorf("%s: %v", d.what, err)
		}
	}
	if code != 0 {
		w.Must("apply", file)
	}
	if d.until != nil {
		acctest.Eventually(l, d.what+" to be mended", d.until)
	}
	if err := l.changes(d.mended...)(nil); err != nil {
		l.Errorf("%s: %v", d.what, err)
	}
	if code != 0 {
		w.ExpectNoChange("after an apply that mends a " + d.what)
	}
	t.add(d.what, code, map[bool]string{true: "no changes", false: "drift"}[none], d.mended, d.shown)
}

// What somebody else changed about members shows in the plan, at the attribute that declares it, and is repaired
// without touching anything else.
func TestAccSwarmDriftOfMembers(t *testing.T) {
	acceptance.Test(t)
	acceptance.Requires(t, acceptance.WriteOnlyAttributes)
	l := newSwarmLab(t, sharedBed(t), "drift")
	w := newSwarmWorkspace(l)
	w.configure(l.cluster(`
  hosts = {
    node1 = { labels = { rack = "a" } }
    node2 = { labels = { rack = "b" } }
    node3 = { labels = { rack = "b" } }
  }`), l.group(`
  image    = "`+memberImage+`"
  timeouts = { create = "10m", update = "10m" }
  roles = {
    ps = {
      replicas     = 1
      args         = ["ignore", "wait"]
      grace_period = "1s"
      container    = { secrets = { token = { value = "first", version = "1" } } }
    }
    worker = { replicas = 2, args = ["wait"], env = { RATE = "0.1" }, placement = { hosts = ["node2", "node3"] } }
  }`), l.named("pool", "driftpool", `
  framework = "spark"
  image     = "`+memberImage+`"
  args      = ["wait"]
  timeouts  = { create = "10m", update = "10m" }
  roles = {
    master = { replicas = 1 }
    worker = { replicas = 2, placement = { labels = { rack = "b" }, spread_by = "rack" } }
  }`))
	w.Must("apply", "-auto-approve")
	w.ExpectNoChange("after the first apply")

	type service = *dockerswarm.ServiceSpec
	// missing returns what a plan shows about a member that is not counted.
	missing := func(member string) []string {
		return []string{
			fmt.Sprintf("group.job.members.%s: none → %[1]s:20000", member),
			fmt.Sprintf("group.job.placements.%s: none → %s", member, l.hostOf(member)),
		}
	}
	var results table
	for _, d := range []drift{{
		what: "service removed", by: func() { l.removeService("drift-worker-1") },
		shown:  append(missing("drift-worker-1"), "group.job.roles.worker.replicas: 1 → 2"),
		mended: []string{"+drift-worker-1"},
	}, {
		// It is repaired while its old task is still ending.
		what: "replicas of a member changed", by: func() {
			l.change("drift-ps-0", func(s service) { *s.Mode.Replicated.Replicas = 0 })
			acctest.Eventually(l, "drift-ps-0 to be asked to end", func() bool { return l.tasks()["drift-ps-0"] == "" })
		},
		shown:  []string{"group.job.roles.ps.replicas: 0 → 1"},
		mended: []string{"+drift-ps-0"},
	}, {
		what: "replicas of a pool changed",
		by:   func() { l.updateService("driftpool-worker", func(s service) { *s.Mode.Replicated.Replicas = 3 }) },
		shown: []string{
			"group.pool.members.driftpool-worker-2: driftpool-worker:20000 → none",
			"group.pool.roles.worker.replicas: 3 → 2",
		},
		mended: []string{"-driftpool-worker.3"},
	}, {
		what: "image changed", by: func() {
			l.updateService("drift-worker-0", func(s service) { s.TaskTemplate.ContainerSpec.Image = otherImage })
		},
		shown:  []string{"group.job.image: " + otherImage + " → " + memberImage},
		mended: []string{"~drift-worker-0"},
	}, {
		what: "env changed", by: func() {
			l.updateService("drift-worker-1", func(s service) {
				env := s.TaskTemplate.ContainerSpec.Env
				env[slices.Index(env, "RATE=0.1")] = "RATE=0.2"
			})
		},
		shown:  []string{"group.job.roles.worker.env.RATE: 0.2 → 0.1"},
		mended: []string{"~drift-worker-1"},
	}, {
		what: "constraint changed: another host", by: func() {
			l.updateService("drift-worker-1", func(s service) {
				s.TaskTemplate.Placement.Constraints = []string{"node.id==" + l.node("node1").ID}
			})
		},
		shown:  []string{"group.job.placements.drift-worker-1: node1 → " + l.hostOf("drift-worker-1")},
		mended: []string{"~drift-worker-1"},
	}, {
		what: "constraint changed: a label", by: func() {
			l.updateService("driftpool-worker", func(s service) {
				s.TaskTemplate.Placement.Constraints = []string{"node.labels.rack == a"}
			})
		},
		shown:  []string{"group.pool.roles.worker.placement.labels.rack: a → b"},
		mended: []string{"~driftpool-worker.1", "~driftpool-worker.2"},
	}, {
		what: "preference changed: another label to spread by", by: func() {
			l.updateService("driftpool-worker", func(s service) {
				s.TaskTemplate.Placement.Preferences[0].Spread.SpreadDescriptor = "node.labels.row"
			})
		},
		shown: []string{"group.pool.roles.worker.placement.spread_by: row → rack"},
	}, {
		what: "label of ours removed", by: func() {
			l.updateService("drift-worker-0", func(s service) { delete(s.Labels, "trainyard.cluster") })
		},
		shown: missing("drift-worker-0"),
	}, {
		what:  "all labels of ours removed",
		by:    func() { l.updateService("drift-worker-0", func(s service) { s.Labels = nil }) },
		shown: missing("drift-worker-0"),
	}, {
		what: "secret rotated", by: func() {
			id := l.secret("driftrotated", "second")
			l.updateService("drift-ps-0", func(s service) {
				reference := *s.TaskTemplate.ContainerSpec.Secrets[0]
				reference.SecretID, reference.SecretName = id, "driftrotated"
				s.TaskTemplate.ContainerSpec.Secrets = []*dockerswarm.SecretReference{&reference}
			})
		},
		shown:  []string{"group.job.roles.ps.container.secrets.token.version: driftrotated → 1"},
		mended: []string{"~drift-ps-0"},
	}, {
		what: "label of a node removed", by: func() {
			l.updateNode("node2", func(n *dockerswarm.NodeSpec) { delete(n.Labels, "rack") })
			acctest.Eventually(l, "the pool to leave node2", func() bool {
				node, tasks := l.node("node2").ID, l.tasksOf(l.service("driftpool-worker").ID)
				return len(tasks) == 2 && !slices.ContainsFunc(tasks, func(task dockerswarm.Task) bool {
					return task.NodeID == node || task.Status.State != dockerswarm.TaskStateRunning
				})
			})
		},
		shown: []string{"cluster.lab.hosts.node2.labels.rack: none → b"},
	}} {
		w.meet(d, &results)
	}

	// The service with the member's name is now somebody else's.
	lost := append(missing("drift-worker-1"), "group.job.roles.worker.replicas: 1 → 2")
	l.removeService("drift-worker-1")
	l.strangers("drift-worker-1", nil)
	stranger := l.service("drift-worker-1")
	code, output := w.exit("plan", "-detailed-exitcode")
	if refusal := acceptance.Says(
		`roles["worker"]: "drift-worker-1" is the name of a service that is not Trainyard's`,
	); code != 1 || !refusal.MatchString(output) {
		t.Errorf("a foreign service of a member's name: the plan ends with %d, want an error like %q\n%s", code,
			refusal, output)
	}
	refresh, output := w.exit("plan", "-refresh-only", "-detailed-exitcode")
	if refresh != 2 {
		t.Errorf("a foreign service of a member's name: plan -refresh-only -detailed-exitcode ends with %d\n%s",
			refresh, output)
	}
	if code, output := w.exit("apply", "-auto-approve"); code != 1 ||
		l.service("drift-worker-1").Version != stranger.Version {
		t.Errorf("a foreign service of a member's name: the apply ends with %d, and the service is %+v\n%s", code,
			l.service("drift-worker-1"), output)
	}
	results.add("a foreign service of the name", code, "drift", nil,
		[]string{`error: roles["worker"]: "drift-worker-1" is the name of a service that is not Trainyard's`})
	w.meet(drift{
		what: "that one removed again", by: func() { l.removeService("drift-worker-1") },
		shown:  lost,
		mended: []string{"+drift-worker-1"},
	}, &results)
	results.log(l)
}
