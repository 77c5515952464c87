//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/trainyard/terraform-provider-trainyard/internal/acctest/testbed"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/systemd"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/systemd/layout"
)

const (
	// formedHosts is how many hosts with nothing but an SSH server become a cluster.
	formedHosts = 5
	// labHosts is how many hosts, or Swarm nodes, are used for everything else.
	labHosts = 3
	// labMembers is the size of the group that is applied and destroyed on each engine, and by Ansible.
	labMembers = 100
	// labRuns is how often that is done; Ansible takes minutes and does it once.
	labRuns = 3
	// hostsRest is the pause before plans are measured.
	hostsRest = 3 * time.Second
)

// hostsPlanSizes are the sizes of the groups to plan; the last is compared with the first.
var hostsPlanSizes = []int{10, 100, 300}

// The bars of bare hosts.
const (
	formBar       = 20 * time.Second
	hostsPlanBar  = 1.5
	hostsApplyBar = 1.0
	restartBar    = 100 * time.Millisecond
	hostMembers   = 50 // per host
	hostMemoryBar = 50e6
	hostCPUBar    = 0.01
	hostCallsBar  = 1
)

// hosts measures the engine systemd on bare hosts, and, in the same run, a Swarm and Ansible, one bed after the other.
func (b *bench) hosts(ctx context.Context) (_ []fmt.Stringer, err error) {
	if strings.HasPrefix(b.work, "/tmp/") || strings.HasPrefix(b.work, "/run/") {
		return nil, fmt.Errorf("hosts have a /tmp and a /run of their own, and can't see %s: "+
			"set TMPDIR to another folder, such as /var/tmp", b.work)
	}
	byProcess, err := b.train(ctx, lab{bench: b, engine: "process"}, "")
	if err != nil {
		return nil, err
	}
	swarm, bySwarm, err := b.swarmSide(ctx)
	if err != nil {
		return nil, err
	}
	formed, err := b.forming(ctx)
	if err != nil {
		return nil, err
	}
	h, err := b.startHosts(ctx, labHosts)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, h.bed.Close()) }()
	hosts, plans, idle, err := h.measure(ctx)
	if err != nil {
		return nil, err
	}
	bySystemd, err := h.train(ctx, h.lab, h.addresses())
	if err != nil {
		return nil, err
	}
	sides := []side{hosts, swarm}
	a, absent := h.ansible(ctx)
	if absent == nil {
		theirs, err := a.measure(ctx, labMembers)
		if err != nil {
			return nil, err
		}
		sides = append(sides, theirs)
	}
	return slices.Concat(formTable(formed), hostsPlanTable(plans), sidesTable(sides, absent), idle.table(),
		trainingTable([]training{byProcess, bySwarm, bySystemd})), nil
}

// hostsBench is a bed of bare hosts.
type hostsBench struct {
	lab
	bed *testbed.Hosts
}

// startHosts starts the bed; the caller has to close it.
func (b *bench) startHosts(ctx context.Context, hosts int) (*hostsBench, error) {
	return b.startHostsWith(ctx, hosts, nil)
}

// startHostsWith is startHosts with more folders of this machine on the hosts.
func (b *bench) startHostsWith(ctx context.Context, hosts int, folders []string) (*hostsBench, error) {
	b.say("hosts: starting %d hosts", hosts)
	bed, err := testbed.StartHosts(ctx, testbed.HostOptions{Hosts: hosts, Mounts: append([]string{b.work}, folders...)})
	if err != nil {
		return nil, err
	}
	return &hostsBench{bed: bed, lab: lab{
		bench: b, engine: systemd.Name, pooled: bed.Hosts[0].Name,
		settings: fmt.Sprintf("ssh = { identity_files = [%q], known_hosts_files = [%q] }", bed.KeyFile, bed.KnownHosts),
		beside: fmt.Sprintf(`
resource "trainyard_files" "member" {
  cluster  = trainyard_cluster.bench
  name     = "member"
  source   = %q
  excludes = ["/*", "!/member"]
}
`, filepath.Dir(b.member)),
	}}, nil
}

// addresses returns the hosts as the value of a cluster's hosts.
func (h *hostsBench) addresses() string {
	var hosts strings.Builder
	hosts.WriteString("{\n")
	for i, host := range h.bed.Hosts {
		role := "worker"
		if i == 0 {
			role = "manager"
		}
		fmt.Fprintf(&hosts, "    %s = { address = \"ssh://ops@%s\", advertise_address = \"%s:22\", role = %q }\n",
			host.Name, host.SSH, host.Address, role)
	}
	return hosts.String() + "  }"
}

// memberCommand is the command of a group whose members wait.
const memberCommand = `command   = ["${trainyard_files.member.path}/member", "wait"]`

// forming measures how long hosts with nothing but an SSH server take to become a cluster that is ready.
func (b *bench) forming(ctx context.Context) (took sample, err error) {
	h, err := b.startHosts(ctx, formedHosts)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, h.bed.Close()) }()
	h.beside = ""
	w, err := h.workspace(ctx, "hosts-form", h.addresses())
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, h.close(ctx, w)) }()
	for range labRuns {
		b.say("hosts: forming a cluster of %d", formedHosts)
		if err := timed(func() error { _, err := w.apply(ctx); return err }, &took); err != nil {
			return nil, err
		}
		if _, err := w.destroy(ctx); err != nil {
			return nil, err
		}
		for _, host := range h.bed.Hosts { // destroy leaves the programs
			if _, err := host.Run(ctx, "rm -rf "+layout.Home); err != nil {
				return nil, err
			}
		}
	}
	return took, nil
}

func formTable(took sample) []fmt.Stringer {
	t := &table{head: []string{"hosts", "from sshd alone to a cluster that is ready", "bar", ""}}
	t.add(count(formedHosts), took.seconds(), fmt.Sprintf("≤ %.0f s", formBar.Seconds()),
		verdict(took.median() <= formBar))
	return []fmt.Stringer{
		t,
		note(fmt.Sprintf("An apply of the cluster, median of %d: programs are brought, supervisors, agents and the",
			labRuns)),
		note("controller run. Before each, all of Trainyard's is removed from the hosts.\n"),
	}
}

// measure measures plans, the work that is compared, and what idle hosts cost.
func (h *hostsBench) measure(ctx context.Context) (s side, plans []hostsPlan, idle idleHosts, err error) {
	w, err := h.workspace(ctx, "hosts", h.addresses())
	if err != nil {
		return s, nil, idle, err
	}
	defer func() { err = errors.Join(err, h.close(ctx, w)) }()
	if plans, err = h.plans(ctx, w); err != nil {
		return s, nil, idle, err
	}
	s, err = h.side(ctx, w, memberCommand, h.gone, func(ctx context.Context) (sample, error) {
		return h.restarts(ctx, func(n int) string { return h.unitPrefix(w, n) })
	})
	if err != nil {
		return s, nil, idle, err
	}
	idle, err = h.idle(ctx, w)
	return s, plans, idle, err
}

// hostsPlan is a plan with the calls to each host.
type hostsPlan struct {
	labPlan
	hosts map[string]engineCalls
}

// plans measures plans without changes.
func (h *hostsBench) plans(ctx context.Context, w *workspace) ([]hostsPlan, error) {
	var perHost []map[string]engineCalls
	counted := func(ctx context.Context, w *workspace) (engineCalls, error) {
		hosts := map[string]engineCalls{}
		all := engineCalls{counts: map[string]int{}}
		err := w.tracedPlan(ctx, "host call", func(fields map[string]string) error {
			calls, known := hosts[fields["host"]]
			if !known {
				calls.counts = map[string]int{}
			}
			err := errors.Join(calls.log(fields), all.log(fields))
			hosts[fields["host"]] = calls
			return err
		})
		if err == nil && len(hosts) != len(h.bed.Hosts) {
			err = fmt.Errorf("the provider's log names calls to %d hosts, not %d", len(hosts), len(h.bed.Hosts))
		}
		perHost = append(perHost, hosts)
		return all, err
	}
	plans, err := h.lab.plans(ctx, w, hostsPlanSizes, memberCommand, hostsRest, counted)
	if err != nil {
		return nil, err
	}
	with := make([]hostsPlan, len(plans))
	for i, p := range plans {
		with[i] = hostsPlan{p, perHost[i]}
	}
	return with, nil
}

// calls returns the calls to the hosts that are called most and least often.
func (p hostsPlan) calls() (most, least engineCalls) {
	for _, calls := range p.hosts {
		if most.counts == nil || calls.total() > most.total() {
			most = calls
		}
		if least.counts == nil || calls.total() < least.total() {
			least = calls
		}
	}
	return most, least
}

func hostsPlanTable(plans []hostsPlan) []fmt.Stringer {
	first, last := plans[0], plans[len(plans)-1]
	t := &table{head: []string{
		"members", "plan", "ratio", "calls to the manager", "to another host", "provider's peak memory",
	}}
	constant := true
	for _, p := range plans {
		most, least := p.calls()
		constant = constant && p.labPlan.calls.total() == first.labPlan.calls.total()
		t.add(count(p.members), p.took.seconds(), times(p.took.ratio(first.took)),
			count(most.total()), count(least.total()), mebibytes(p.memory))
	}
	ratio := last.took.ratio(first.took)
	most, least := last.calls()
	return []fmt.Stringer{
		t,
		note(
			"Plans without change of a group on three hosts, over one SSH connection a host. A third of the " +
				"members have a",
		),
		note("slot of a GPU pool."),
		note(fmt.Sprintf("Calls to the manager: %s.", most)),
		note(fmt.Sprintf("Calls to another host: %s.", least)),
		note(fmt.Sprintf("Bar: %s members at most %s the plan of %s: %s, %s.",
			count(last.members), times(hostsPlanBar), count(first.members), times(ratio),
			verdict(ratio <= hostsPlanBar))),
		note(fmt.Sprintf("Bar: calls constant: %s. One call a host: %s.\n",
			verdict(constant), verdict(most.total() <= hostCallsBar))),
	}
}
