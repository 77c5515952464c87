//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/procfs"

	"github.com/trainyard/terraform-provider-trainyard/internal/acctest/testbed"
	"github.com/trainyard/terraform-provider-trainyard/internal/agent/telemetry"
	"github.com/trainyard/terraform-provider-trainyard/internal/agent/units"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/systemd/layout"
)

// idleHosts is what supervisors and agents use on hosts with idle members.
type idleHosts []idleHost

// idleHost is what they use on one host.
type idleHost struct {
	name string
	// supervisor and agent are their private memory; resident is all memory of both, including their programs; charged
	// is what systemd charges to their units.
	supervisor, agent, resident, charged uint64
	cpu, elapsed                         time.Duration
}

// share returns the share of a core.
func (i idleHost) share() float64 { return i.cpu.Seconds() / i.elapsed.Seconds() }

// idle measures hosts with many members each.
func (h *hostsBench) idle(ctx context.Context, w *workspace) (idle idleHosts, err error) {
	h.say("hosts: creating a group of %s", count(hostMembers*labHosts))
	if err := h.applied(ctx, w, hostMembers*labHosts, memberCommand); err != nil {
		return idle, err
	}
	if err := pause(ctx, hostsRest); err != nil {
		return idle, err
	}
	h.say("hosts: watching them for %s", idleFor)
	began := time.Now()
	before := make([]time.Duration, len(h.bed.Hosts))
	idle = make(idleHosts, len(h.bed.Hosts))
	for i, host := range h.bed.Hosts {
		if idle[i], err = residentsOf(host.Root()); err != nil {
			return idle, fmt.Errorf("%s: %w", host.Name, err)
		}
		before[i] = idle[i].cpu
	}
	if err := pause(ctx, idleFor); err != nil {
		return idle, err
	}
	for i, host := range h.bed.Hosts {
		now, err := residentsOf(host.Root())
		if err != nil {
			return idle, fmt.Errorf("%s: %w", host.Name, err)
		}
		now.name, now.cpu, now.elapsed = host.Name, now.cpu-before[i], time.Since(began)
		if now.charged, err = charged(ctx, host, w.name); err != nil {
			return nil, fmt.Errorf("%s: %w", host.Name, err)
		}
		idle[i] = now
	}
	return idle, nil
}

// residentsOf reads what the supervisor and the agent of a host use, given the host's root folder.
func residentsOf(root string) (r idleHost, err error) {
	proc, err := procfs.NewFS(filepath.Join(root, "proc"))
	if err != nil {
		return r, err
	}
	processes, err := proc.AllProcs()
	if err != nil {
		return r, err
	}
	for _, p := range processes {
		arguments, err := p.CmdLine()
		if err != nil || len(arguments) < 2 {
			continue // it has ended, or is neither
		}
		into := map[string]*uint64{"supervise": &r.supervisor, "agent": &r.agent}[arguments[1]]
		if into == nil {
			continue
		}
		status, err := p.NewStatus()
		if err != nil {
			return r, err
		}
		stat, err := p.Stat()
		if err != nil {
			return r, err
		}
		if *into, err = privateOf(p); err != nil {
			return r, err
		}
		r.resident += status.VmRSS
		r.cpu += time.Duration(stat.CPUTime() * float64(time.Second))
	}
	if r.supervisor == 0 || r.agent == 0 {
		err = errors.New("no supervisor, or no agent, is at work")
	}
	return r, err
}

// charged returns the memory that systemd charges to the units of the supervisor and the agent on a host.
func charged(ctx context.Context, host *testbed.Host, cluster string) (sum uint64, err error) {
	agent := strings.TrimSuffix(units.Name(cluster, telemetry.AgentName, ""), ".service") + "*.service"
	output, err := host.Run(ctx, fmt.Sprintf("systemctl show --property MemoryCurrent --value '%s' '%s'",
		layout.SupervisorUnit(cluster), strings.ReplaceAll(agent, `\`, "?")))
	if err != nil {
		return 0, err
	}
	fields := strings.Fields(output)
	if len(fields) != 2 {
		return 0, fmt.Errorf("systemd knows no unit of the supervisor, or none of the agent: %q", output)
	}
	for _, field := range fields {
		each, err := strconv.ParseUint(field, 10, 64)
		if err != nil {
			return 0, fmt.Errorf("systemd does not account for memory: %q", output)
		}
		sum += each
	}
	return sum, nil
}

func (i idleHosts) table() []fmt.Stringer {
	t := &table{head: []string{"host", "members", "supervisor", "agent", "both", "by systemd", "resident", "of a core"}}
	var memory uint64
	share := 0.0
	for _, row := range i {
		both := row.supervisor + row.agent
		t.add(row.name, count(hostMembers), mebibytes(row.supervisor), mebibytes(row.agent), mebibytes(both),
			mebibytes(row.charged), mebibytes(row.resident), fmt.Sprintf("%.2f %%", 100*row.share()))
		memory, share = max(memory, both, row.charged), max(share, row.share())
	}
	return []fmt.Stringer{
		t,
		note(fmt.Sprintf(
			"Private memory, and processor time over %s in which nothing changes; the controller asks the agents",
			idleFor,
		)),
		note(fmt.Sprintf(
			"every %s. By systemd is what it accounts to their two units (MemoryCurrent). Resident is what both", asked,
		)),
		note("have in memory in all, with what is mapped of their programs' files: page cache, which the kernel " +
			"takes back when"),
		note("it needs memory, and maps by up to 2 MiB at once."),
		note(fmt.Sprintf("Bar: supervisor and agent under 50 MB (%s) of private memory, and by systemd: %s. Under "+
			"%.0f %% of a core: %s.\n",
			mebibytes(hostMemoryBar), verdict(float64(memory) < hostMemoryBar), 100*hostCPUBar,
			verdict(share < hostCPUBar))),
	}
}

// unitPrefix returns the prefix of the names of a member's units.
func (h *hostsBench) unitPrefix(w *workspace, member int) string {
	return strings.TrimSuffix(units.Name(w.name, fmt.Sprintf("job-worker-%d", member), ""), ".service")
}

// gone returns once no host has a unit of the group any more.
func (h *hostsBench) gone(ctx context.Context) error {
	for _, host := range h.bed.Hosts {
		for {
			left, err := host.Run(ctx,
				`systemctl list-units --plain --no-legend 'trainyard-*' | grep -c 'job.x2dworker' || true`)
			if err != nil {
				return err
			}
			if left == "0" {
				break
			}
			if err := pause(ctx, stackLook); err != nil {
				return err
			}
		}
	}
	return nil
}

// restart kills the main process of a unit whose name begins with sys.argv[1], and prints after how many microseconds,
// by systemd's timestamps, the main process of such a unit started.
const restart = `import os, signal, subprocess, sys, time
def systemctl(*arguments):
    return subprocess.run(["systemctl", *arguments], capture_output=True, text=True).stdout.splitlines()
def shown():
    for line in systemctl("list-units", "--plain", "--no-legend", "--full", "*.service"):
        unit = line.split()[0]
        if unit.startswith(sys.argv[1]):
            said = systemctl("show", "--property", "MainPID,ExecMainStartTimestampMonotonic", "--", unit)
            fields = dict(field.split("=", 1) for field in said)
            yield int(fields["MainPID"]), int(fields["ExecMainStartTimestampMonotonic"])
pid = next(pid for pid, started in shown() if pid)
killed = time.clock_gettime_ns(time.CLOCK_MONOTONIC) // 1000
os.kill(pid, signal.SIGKILL)
while True:
    for pid, started in shown():
        if pid and started > killed:
            print(started - killed)
            sys.exit()
    time.sleep(0.1)
`

// restarts kills members on the first host one after another, given their units' prefixes, and returns how long each
// took to start again.
func (h *hostsBench) restarts(ctx context.Context, prefix func(member int) string) (took sample, err error) {
	for i := range restarted {
		output, err := h.bed.Hosts[0].Run(ctx,
			fmt.Sprintf("timeout 60 python3 -c '%s' '%s'", restart, prefix(i*labHosts)))
		if err != nil {
			return nil, err
		}
		micros, err := strconv.Atoi(strings.TrimSpace(output))
		if err != nil {
			return nil, err
		}
		took = append(took, time.Duration(micros)*time.Microsecond)
	}
	return took, nil
}
