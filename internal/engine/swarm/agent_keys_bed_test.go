//go:build linux

package swarm

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/docker/docker/api/types/filters"
	"github.com/docker/docker/api/types/swarm"
	"github.com/docker/docker/api/types/volume"
	"github.com/prometheus/procfs"

	"github.com/trainyard/terraform-provider-trainyard/internal/acctest"
	"github.com/trainyard/terraform-provider-trainyard/internal/acctest/testbed"
	"github.com/trainyard/terraform-provider-trainyard/internal/agent/telemetry"
	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/swarm/daemons"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/swarm/spec"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/swarm/swarmtest"
	"github.com/trainyard/terraform-provider-trainyard/internal/reconcile"
)

// TestAgentKeys: once a host has left, the agents have a new key that it never had, refuse the old one, and have lost
// none of their history. An agent that claims to be another host's is not believed.
func TestAgentKeys(t *testing.T) {
	t.Parallel()
	testbed.OnEngines(t, testAgentKeys)
}

func testAgentKeys(t *testing.T, engine string) {
	t.Parallel()
	l := newKeysLab(t, engine)
	var before map[string]telemetry.Report
	acctest.Eventually(t, "the agents of all hosts to report", func() bool { // one may be too busy to answer
		var failures map[string]string
		var err error
		before, failures, err = l.remembered(acctest.Bounded(t))
		if err != nil || len(failures) > 0 {
			t.Logf("the agents of %d hosts report; %v, %v", len(before), failures, err)
		}
		return err == nil && len(before) == 3
	})
	stolen := l.stealKeys()
	acctest.Eventually(t, "an agent to answer whoever has the key",
		func() bool { return len(l.askWith(stolen, "node2").Reports) == 1 })
	first, _ := l.keys()
	if l.volumes(l.bed.Nodes...) != 3 {
		t.Error("the histories of the agents are in no volumes")
	}

	end := l.keepAsking(before, "node1", "node2")
	l.apply(l.bed.Nodes[:2]...)
	l.awaitNoHistory(l.bed.Nodes[2])
	acctest.Eventually(t, "the agents to have only another key", func() bool {
		handedOut, all := l.keys()
		return len(handedOut) == 1 && len(all) == 1 && handedOut[0] != first[0]
	})
	l.awaitResidents()
	end()
	acctest.Eventually(t, "the agents to answer whoever has it", func() bool {
		return len(l.askWith(l.stealKeys(), "node2").Reports) == 1
	})
	acctest.Eventually(t, "an agent to refuse the old key", func() bool {
		reports := l.askWith(stolen, "node2")
		if len(reports.Reports) != 0 {
			t.Fatalf("whoever has the old key gets %+v", reports)
		}
		return strings.Contains(fmt.Sprint(reports.Failures), "certificate")
	})

	l.claim("node1")
	usage := l.claimed()
	if u := usage.Hosts["node1"]; u.Reason != "" || u.MemoryMiB.Last == nil {
		t.Errorf("usage of node1 is %+v", u)
	}
	u := usage.Hosts["node2"]
	named := strings.HasPrefix(u.Reason, "host node2: the agent at "+l.subnet+".") &&
		strings.Contains(u.Reason, "claims to be node")
	if !named || u.MemoryMiB.Last != nil {
		t.Errorf("usage of node2, whose agent claims to be that of node1, is %+v", u)
	}
}

// keysLab is a cluster with an agent on each of three nodes, which it has made a Swarm.
type keysLab struct {
	*testing.T
	bed    *testbed.Bed
	engine *Engine
	// subnet is that of its network, as returned by [swarmtest.OwnSubnet]. Its agents' processes are recognised by it.
	subnet string
}

func newKeysLab(t *testing.T, engineName string) keysLab {
	t.Helper()
	l := keysLab{
		T: t, bed: testbed.New(t, testbed.Options{Nodes: 3, Engine: engineName}), subnet: swarmtest.OwnSubnet(),
	}
	var err error
	l.engine, err = Open(domain.ClusterRef{Engine: Name, Name: "keys"}, engine.Settings{},
		daemons.Program{File: acctest.Build(t, acctest.Provider)})
	must(t, err)
	t.Cleanup(func() {
		must(t, l.engine.Dissolve(acctest.Bounded(t)))
		l.awaitNoHistory(l.bed.Nodes...)
	})
	l.apply(l.bed.Nodes...)
	return l
}

// apply makes nodes the hosts of the cluster, the first a manager, and returns once its residents run.
func (l keysLab) apply(nodes ...*testbed.Node) {
	l.Helper()
	hosts := map[string]domain.Host{}
	for i, node := range nodes {
		hosts[node.Name] = domain.Host{Address: node.Host(), Role: domain.HostWorker}
		if i == 0 {
			hosts[node.Name] = domain.Host{Address: node.Host(), Role: domain.HostManager}
		}
	}
	ctx := acctest.Bounded(l)
	spec, problems, err := l.engine.Complete(ctx, domain.Cluster{
		Name: "keys", Engine: Name, Hosts: hosts, Network: &domain.Network{Subnet: l.subnet + ".0.0/20"},
	})
	must(l.T, err)
	must(l.T, problems.Err())
	spec, err = l.engine.Form(ctx, spec)
	must(l.T, err)
	document, err := engine.Cluster(ctx, l.engine)
	if document.Revision != 0 {
		must(l.T, err)
	}
	document.Spec = spec
	_, err = engine.Put(ctx, l.engine, document)
	must(l.T, err)
	must(l.T, l.engine.StartController(ctx))
	l.awaitResidents()
}

func (l keysLab) awaitResidents() {
	l.Helper()
	_, err := reconcile.Reconciler{Engine: l.engine}.AwaitResidents(acctest.Bounded(l))
	must(l.T, err)
}

// remembered returns everything that agents remember, by host name, and why others did not report.
func (l keysLab) remembered(
	ctx context.Context,
) (reports map[string]telemetry.Report, failures map[string]string, err error) {
	document, err := engine.Cluster(ctx, l.engine)
	if err != nil {
		return nil, nil, err
	}
	m, err := l.engine.Connection.Manager(ctx)
	if err != nil {
		return nil, nil, err
	}
	engines, err := l.engine.Connection.Engines(ctx, l.engine, m)
	if err != nil {
		return nil, nil, err
	}
	asked := []string{document.Spec.Hosts["node1"].ID}
	answers, err := l.engine.Answers(ctx, document.Spec, engines, asked, telemetry.Query{Window: telemetry.Memory})
	reports, failures = map[string]telemetry.Report{}, map[string]string{}
	for host, answer := range answers {
		if answer.Why == "" {
			reports[host] = answer.Report
		} else {
			failures[host] = answer.Why
		}
	}
	return reports, failures, err
}

// keepAsking queries the agents of hosts repeatedly until end is called, and then until all have answered once more. It
// fails if one has lost anything that it reported before; one that is being replaced may be silent for a moment.
func (l keysLab) keepAsking(before map[string]telemetry.Report, hosts ...string) (end func()) {
	ctx := acctest.Bounded(l)
	last := make(chan struct{})
	done := make(chan struct{})
	go func() {
		defer close(done)
		for ended := false; ; {
			select {
			case <-last:
				ended = true
			default:
			}
			now, failures, err := l.remembered(ctx)
			if ctx.Err() != nil {
				l.Errorf("waited for the agents to report in vain: %v, %v", failures, err)
				return
			}
			reporting := 0
			for _, host := range hosts {
				is, reports := now[host]
				if !reports {
					continue
				}
				reporting++
				if was := before[host]; !is.Since.Equal(was.Since) || is.Samples < was.Samples {
					l.Errorf("%s reported %d samples since %s, and now reports %d since %s",
						host, was.Samples, was.Since, is.Samples, is.Since)
					return
				}
			}
			if ended && reporting == len(hosts) {
				return
			}
		}
	}()
	return func() {
		close(last)
		<-done
	}
}

// agent returns the ID of an agent's process.
func (l keysLab) agent() (pid int) {
	l.Helper()
	onNetwork := func(argument string) bool { return strings.HasPrefix(argument, l.subnet+".0.0/20:") }
	acctest.Eventually(l, "an agent", func() bool {
		processes, err := procfs.AllProcs()
		must(l.T, err)
		for _, p := range processes {
			line, err := p.CmdLine()
			if err == nil && slices.Contains(line, "agent") && slices.ContainsFunc(line, onNetwork) {
				pid = p.PID
			}
		}
		return pid != 0
	})
	return pid
}

// stealKeys copies the agents' current keys to a folder, as root on a host could.
func (l keysLab) stealKeys() (folder string) {
	l.Helper()
	folder = l.TempDir()
	files, err := filepath.Glob(fmt.Sprintf("/proc/%d/root%s/*.pem", l.agent(), daemons.KeysPath))
	must(l.T, err)
	for _, file := range files {
		text, err := os.ReadFile(file)
		must(l.T, err)
		must(l.T, os.WriteFile(filepath.Join(folder, filepath.Base(file)), text, 0o600))
	}
	return folder
}

// askWith queries the agent of a host on the cluster's network with the keys in a folder.
func (l keysLab) askWith(folder, host string) telemetry.Reports {
	l.Helper()
	document, err := engine.Cluster(l.Context(), l.engine)
	must(l.T, err)
	node := document.Spec.Hosts[host].ID
	peer := telemetry.Peer{Node: node, Address: l.address(node)}
	text, err := exec.Command("nsenter", fmt.Sprintf("--net=/proc/%d/ns/net", l.agent()),
		acctest.Build(l, acctest.Provider), "agent", "sample", "--keys", folder, "--peer", peer.String()).Output()
	if err != nil {
		l.Logf("asking %s: %v", peer, err)
		return telemetry.Reports{}
	}
	reports, err := telemetry.ReadReports(text)
	must(l.T, err)
	return reports
}

// address returns the address of a node's agent on the cluster's network.
func (l keysLab) address(node string) string {
	l.Helper()
	tasks, err := l.bed.Nodes[0].Client().TaskList(l.Context(), swarm.TaskListOptions{Filters: filters.NewArgs(
		filters.Arg("service", spec.ResidentName("keys", spec.KindAgent)), filters.Arg("node", node),
		filters.Arg("desired-state", "running"),
	)})
	must(l.T, err)
	address := "" // while the agent is being replaced
	for _, task := range tasks {
		if task.Status.State == swarm.TaskStateRunning && len(task.NetworksAttachments) > 0 {
			address, _, _ = strings.Cut(task.NetworksAttachments[0].Addresses[0], "/")
		}
	}
	return address
}

// keys returns the IDs of the keys that the agents' service refers to, and of all existing ones.
func (l keysLab) keys() (handedOut, all []string) {
	l.Helper()
	services, err := l.engine.Services(l.Context())
	must(l.T, err)
	for _, ref := range services[spec.ResidentName("keys", spec.KindAgent)].Spec.TaskTemplate.ContainerSpec.Secrets {
		handedOut = append(handedOut, ref.SecretID)
	}
	keys, err := l.bed.Nodes[0].Client().SecretList(l.Context(), swarm.SecretListOptions{Filters: filters.NewArgs(
		filters.Arg("label", spec.LabelCluster+"=keys"), filters.Arg("label", spec.LabelKind+"="+spec.KindAgent),
	)})
	must(l.T, err)
	for _, key := range keys {
		all = append(all, key.ID)
	}
	return handedOut, all
}

// claim makes all agents claim to be the given host's.
func (l keysLab) claim(host string) {
	l.Helper()
	document, err := engine.Cluster(l.Context(), l.engine)
	must(l.T, err)
	m, err := l.engine.Connection.Manager(l.Context())
	must(l.T, err)
	lie := func(live swarm.Service) (swarm.ServiceSpec, bool) {
		env := live.Spec.TaskTemplate.ContainerSpec.Env
		i := slices.IndexFunc(env, func(v string) bool { return strings.HasPrefix(v, telemetry.NodeVariable+"=") })
		env[i] = telemetry.NodeVariable + "=" + document.Spec.Hosts[host].ID
		return live.Spec, true
	}
	must(l.T,
		l.engine.UpdateService(l.Context(), m, swarm.Service{}, spec.ResidentName("keys", spec.KindAgent), "", lie))
	l.awaitResidents()
}

// claimed returns what is used, once agents have reported which host they claim to be of: one may be too busy to
// answer.
func (l keysLab) claimed() (usage engine.Usage) {
	l.Helper()
	acctest.Eventually(l, "what the agents claim", func() bool {
		var err error
		usage, err = l.engine.Usage(l.Context(), time.Second)
		must(l.T, err)
		first, second := usage.Hosts["node1"], usage.Hosts["node2"]
		if second.MemoryMiB.Last != nil {
			return true // it is believed, which the test is to say
		}
		return first.Reason == "" && strings.Contains(second.Reason, "claims")
	})
	return usage
}

// awaitNoHistory waits until nodes have no history of the cluster. A busy Engine may finish a removal after its caller
// has given up.
func (l keysLab) awaitNoHistory(nodes ...*testbed.Node) {
	l.Helper()
	acctest.Eventually(l, "the histories to be gone", func() bool { return l.volumes(nodes...) == 0 })
}

// volumes returns how many volumes of the cluster nodes have.
func (l keysLab) volumes(nodes ...*testbed.Node) (count int) {
	l.Helper()
	ours := filters.NewArgs(filters.Arg("label", spec.LabelCluster+"=keys"))
	for _, node := range nodes {
		found, err := node.Client().VolumeList(acctest.Bounded(l), volume.ListOptions{Filters: ours})
		must(l.T, err)
		count += len(found.Volumes)
	}
	return count
}
