//go:build linux

package swarm_test

import (
	"fmt"
	"iter"
	"slices"
	"strings"
	"testing"

	dockerswarm "github.com/docker/docker/api/types/swarm"

	"github.com/trainyard/terraform-provider-trainyard/internal/acceptance"
	"github.com/trainyard/terraform-provider-trainyard/internal/acctest"
)

// workers returns the attributes of a group with this many workers that take these steps.
func workers(replicas int, steps ...string) string {
	return fmt.Sprintf(`
  image = %q
  args  = %s
  roles = { worker = { replicas = %d } }`, memberImage, acceptance.List(steps...), replicas)
}

// lodger returns the configuration of a group in a cluster that another workspace manages, reached at an endpoint.
func (l *swarmLab) lodger(endpoint, name, attributes string) string {
	return fmt.Sprintf(`
resource "trainyard_group" "job" {
  cluster = { name = %q, engine = "swarm", endpoint = %q }
  name    = %q
  %s
}
`, l.name, endpoint, name, attributes)
}

// running returns how many tasks of a group should run.
func (l *swarmLab) running(group string) int {
	l.Helper()
	n := 0
	for member := range l.tasks() {
		if strings.HasPrefix(member, group+"-worker-") {
			n++
		}
	}
	return n
}

// expectWorkers waits until exactly one container runs for each worker of a group, and no other.
func (l *swarmLab) expectWorkers(group string, workers int) {
	l.Helper()
	var want []string
	for i := range workers {
		want = append(want, fmt.Sprintf("%s-worker-%d", group, i))
	}
	acctest.Eventually(l, fmt.Sprintf("containers of %q and of nobody else", want), func() bool {
		return slices.Equal(l.containersOf(group, l.bed.Nodes...), want)
	})
}

// expectNoTrace fails unless everything named after a group is gone from the Swarm except its lock: if a provider died
// after the group was gone, its lock stays until somebody takes it, or until the cluster is destroyed.
func (l *swarmLab) expectNoTrace(group string) {
	l.Helper()
	docker := l.bed.Nodes[0].Client()
	var names []string
	services, err := docker.ServiceList(l.Context(), dockerswarm.ServiceListOptions{})
	l.must(err)
	for _, service := range services {
		names = append(names, service.Spec.Name)
	}
	configs, err := docker.ConfigList(l.Context(), dockerswarm.ConfigListOptions{})
	l.must(err)
	for _, config := range configs {
		if config.Spec.Labels["trainyard.kind"] != "lock" {
			names = append(names, config.Spec.Name)
		}
	}
	secrets, err := docker.SecretList(l.Context(), dockerswarm.SecretListOptions{})
	l.must(err)
	for _, secret := range secrets {
		names = append(names, secret.Spec.Name)
	}
	// The complete name: group job-1 leaves no trace of job-11.
	left := slices.DeleteFunc(names, func(name string) bool {
		_, after, found := strings.Cut(name, group)
		return !found || after != "" && '0' <= after[0] && after[0] <= '9'
	})
	if len(left) > 0 {
		l.Errorf("of group %s there is left: %s", group, strings.Join(left, ", "))
	}
}

// deadly is a run of Terraform in which the provider dies.
type deadly struct {
	// before is the configuration that is first applied normally, if any, and after the one in the run.
	before, after string
	// destroys makes the run a destroy.
	destroys bool
	// check checks what exists after the next apply, gone what is left after the next destroy.
	check, gone func()
}

// The provider is killed after calls to the engine that change something, on a real Swarm: the next apply finds what
// was changed so far, and succeeds, with no member missing or duplicated, and a destroy leaves nothing. The locks of
// dead providers are taken over at once: otherwise the next apply would be refused.
func TestAccSwarmProviderKilled(t *testing.T) {
	acceptance.Test(t)
	bed := sharedBed(t)
	stands := newSwarmWorkspace(newSwarmLab(t, bed, "killed"))
	stands.configure(stands.cluster(""))
	stands.Must("apply", "-auto-approve")

	// group returns a function that prepares a run with a group of its own in the existing cluster.
	group := func(
		name string, run func(config func(attributes string) string) deadly,
	) func(*testing.T, int) (*swarmLab, deadly) {
		return func(t *testing.T, changes int) (*swarmLab, deadly) {
			name := fmt.Sprintf("%s-%d", name, changes)
			l := *stands.swarmLab
			l.T = t
			d := run(func(attributes string) string { return l.lodger(bed.Nodes[0].Host(), name, attributes) })
			d.check = func() { l.expectWorkers(name, 2) }
			d.gone = func() {
				l.expectNoTrace(name)
				l.expectWorkers(name, 0)
			}
			return &l, d
		}
	}
	// cluster returns a function that prepares a run with a cluster of its own.
	cluster := func(name string, run func(config string) deadly) func(*testing.T, int) (*swarmLab, deadly) {
		return func(t *testing.T, changes int) (*swarmLab, deadly) {
			l := newSwarmLab(t, bed, fmt.Sprintf("%s-%d", name, changes))
			d := run(l.cluster(""))
			d.check, d.gone = func() {}, l.expectNothing
			return l, d
		}
	}
	t.Run("a", func(t *testing.T) {
		for _, c := range []struct {
			name string
			// calls are the calls of the run that change something.
			calls string
			// kills says after which of them the provider is killed.
			kills iter.Seq[int]
			run   func(t *testing.T, changes int) (*swarmLab, deadly)
		}{
			{"group is created",
				"Lock, Lock, Put group, StartController, Stage, Stage, Start, Put group, Prune, Put ownership",
				acctest.Kills(6), group("create", func(config func(string) string) deadly {
					return deadly{after: config(workers(2, "wait"))}
				})},
			{"group is changed", "Lock, Lock, Put group, StartController, Stage, Stage, Start, Put group, Prune",
				acctest.Kills(7), group("change", func(config func(string) string) deadly {
					return deadly{
						before: config(workers(1, "wait")), after: config(workers(2, "print:changed", "wait")),
					}
				})},
			{"group is destroyed", "Delete ownership, Lock, Remove, Remove, Prune, Delete group", acctest.Kills(3),
				group("destroy", func(config func(string) string) deadly {
					return deadly{before: config(workers(2, "wait")), destroys: true}
				})},
			{"cluster is created", "Form, Put cluster, StartController, Put ownership", acctest.Kills(2),
				cluster("created", func(config string) deadly {
					return deadly{after: config}
				})},
			{"cluster is destroyed", "Delete ownership, Dissolve", acctest.Kills(2),
				cluster("destroyed", func(config string) deadly {
					return deadly{before: config, destroys: true}
				})},
		} {
			calls := strings.Split(c.calls, ", ")
			for last := range c.kills {
				if last > len(calls)+1 {
					break
				}
				name := c.name + " and nobody dies"
				if last <= len(calls) {
					name = fmt.Sprintf("%s, death after change %d, %s", c.name, last, calls[last-1])
				}
				t.Run(name, func(t *testing.T) {
					t.Parallel()
					l, d := c.run(t, last)
					if made := d.dieAfter(l, last); !slices.Equal(made, calls[:min(last, len(calls))]) {
						t.Errorf("the provider made the calls %q, want the first %d of %q", made, last, calls)
					}
				})
			}
		}
	})
}

// dieAfter makes the provider die after a number of calls that change something, and shows that the next runs succeed.
// It returns the calls that were made.
func (d deadly) dieAfter(l *swarmLab, changes int) []string {
	l.Helper()
	apply, destroy := []string{"apply", "-auto-approve"}, []string{"destroy", "-auto-approve"}
	w := &swarmWorkspace{l, acctest.NewWorkspace(l, acctest.Build(l, acctest.Mortal))}
	if d.before != "" {
		w.configure(d.before)
		w.Must(apply...)
	}
	if d.destroys {
		w.DieAfter(changes, destroy...)
	} else {
		w.configure(d.after)
		w.DieAfter(changes, apply...)
	}
	calls := w.Calls()
	if !d.destroys {
		w.Must(apply...)
		w.ExpectNoChange("after a death")
		d.check()
	}
	w.Must(destroy...)
	d.gone()
	return calls
}
