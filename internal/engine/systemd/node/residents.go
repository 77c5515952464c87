//go:build linux

package node

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/trainyard/terraform-provider-trainyard/internal/agent/statedir"
	"github.com/trainyard/terraform-provider-trainyard/internal/agent/telemetry"
	"github.com/trainyard/terraform-provider-trainyard/internal/bounded"
	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/systemd/layout"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/systemd/relay"
)

// unit is the unit of a supervisor. Members are units of their own, and keep running without it.
const unit = `# Written by Trainyard. Changes are overwritten by the next apply of the cluster.
[Unit]
Description=Trainyard: members of cluster %[1]s
StartLimitIntervalSec=0

[Service]
Type=exec
ExecStart=%[2]s supervise --units --state-dir %[3]s --cluster %[1]s --version %[4]s
Restart=on-failure
RestartSec=100ms
Environment=HOME=/root
KillMode=process
OOMScoreAdjust=-500

[Install]
WantedBy=multi-user.target
`

// The links in a cluster's state directory to the programs that this host runs for it, whatever their version. The
// first is the only one that the controller may run.
const (
	programLink = "program"
	agentLink   = telemetry.AgentName
)

// startResidents makes this program run the supervisor, the controller and the agent.
func (p part) startResidents(ctx context.Context, orders relay.Orders) error {
	if err := relink(p.node.program, p.dir.Path(programLink)); err != nil {
		return err
	}
	if orders.Agents != nil {
		agent := p.node.agent(orders)
		if err := relink(agent, p.dir.Path(agentLink)); err != nil {
			return err
		}
		if err := recordAgent(layout.Programs, p.node.program, agent); err != nil {
			return err
		}
	}
	if err := writeUnit(ctx, layout.Units, p.dir.Cluster, p.node.program, p.version()); err != nil {
		return err
	}
	if err := removeUnused(layout.Programs, layout.Clusters, layout.Units, time.Now()); err != nil {
		return fmt.Errorf("removing programs of earlier versions: %w", err)
	}
	started, err := p.node.part(p.dir.Cluster) // with these programs
	if err != nil {
		return err
	}
	if orders.Cluster != nil {
		return started.RunResidents(ctx, *orders.Cluster)
	}
	return started.StartController(ctx)
}

// agent returns the file that agents run from: if the one with GPU support was not installed, as this host can't start
// it, that is this program, which has none.
func (n *Node) agent(orders relay.Orders) string {
	if digest := orders.Agents[runtime.GOARCH]; digest != "" {
		file := filepath.Join(layout.Programs, digest, telemetry.AgentName)
		if _, err := os.Stat(file); !errors.Is(err, fs.ErrNotExist) {
			return file
		}
	}
	return n.program
}

// writeUnit makes systemd run the supervisor whenever this host runs. It repeats what an earlier attempt may not have
// reached after it had written the unit.
func writeUnit(ctx context.Context, folder, cluster, program, version string) error {
	name := layout.SupervisorUnit(cluster)
	file := filepath.Join(folder, name)
	text := []byte(fmt.Sprintf(unit, cluster, program, layout.Clusters, version))
	if present, err := os.ReadFile(file); err != nil || !bytes.Equal(present, text) {
		if err := statedir.WriteFile(file, text, 0o644); err != nil { // unit files are readable by all
			return fmt.Errorf("writing the unit of the supervisor: %w", err)
		}
	}
	if err := forgetStale(ctx, name); err != nil { // of an earlier version, or an earlier cluster of the same name
		return err
	}
	return systemctl(ctx, "enable", "--no-reload", "--quiet", name)
}

// forgetStale makes systemd reload its units if it has another version of this one in memory. It is avoided otherwise,
// as systemd stops responding meanwhile, for long on a host with many units.
func forgetStale(ctx context.Context, name string) error {
	stale, err := exec.CommandContext(ctx, "systemctl", "show", "--property", "NeedDaemonReload", "--value", name).Output() //nolint:gosec // the name is ours
	if err != nil {
		return fmt.Errorf("systemctl show %s: %w", name, err)
	}
	if strings.TrimSpace(string(stale)) != "yes" {
		return nil
	}
	return systemctl(ctx, "daemon-reload")
}

// residents returns the states of those that run here; without a unit, none was ever started.
func (p part) residents(ctx context.Context) (domain.Residents, error) {
	if _, err := os.Stat(filepath.Join(layout.Units, layout.SupervisorUnit(p.dir.Cluster))); !errors.Is(err,
		fs.ErrNotExist) {
		return p.Residents(ctx)
	}
	ledger, err := p.ledger()
	absent := domain.Resident{
		State: domain.ResidentAbsent, Error: "never started, or removed",
		Advice: "The next apply that changes the cluster or a group starts it.",
	}
	return domain.Residents{Controller: absent, Agents: map[string]domain.Resident{ledger.Host: absent}}, err
}

// version identifies what this host runs for the cluster; it differs after a change of any of its programs.
func (p part) version() string {
	version := filepath.Base(filepath.Dir(p.node.program))
	if agent, err := os.Readlink(p.dir.Path(agentLink)); err == nil {
		version += "-" + filepath.Base(filepath.Dir(agent))
	}
	return version
}

// supervise starts the supervisor of a cluster, unless it runs. A unit that somebody removed is written again.
func (n *Node) supervise(ctx context.Context, of engineKey) error {
	name := layout.SupervisorUnit(of.cluster)
	if _, err := os.Stat(filepath.Join(layout.Units, name)); errors.Is(err, fs.ErrNotExist) {
		if err := writeUnit(ctx, layout.Units, of.cluster, n.program, of.version); err != nil {
			return err
		}
	}
	return systemctl(ctx, "start", name)
}

func systemctl(ctx context.Context, arguments ...string) error {
	stderr := &bounded.Tail{Most: bounded.Complaint}
	command := exec.CommandContext(ctx, "systemctl", arguments...) //nolint:gosec // the arguments are ours
	command.Stderr = stderr
	if err := command.Run(); err != nil {
		return fmt.Errorf("systemctl %s: %w %s", strings.Join(arguments, " "), err, stderr)
	}
	return nil
}
