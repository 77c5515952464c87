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

	"github.com/trainyard/terraform-provider-trainyard/internal/agent/telemetry"
	"github.com/trainyard/terraform-provider-trainyard/internal/bounded"
	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/systemd/layout"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/systemd/relay"
)

// unit is the unit of a supervisor. Members are units of their own, and go on without it.
const unit = `# Written by Trainyard; an apply of the cluster writes it anew.
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

// The links in a cluster's state directory to what this host runs for it, whatever its version is. The first is what
// the controller is let in for.
const (
	programLink = "program"
	agentLink   = telemetry.AgentName
)

// startResidents has the supervisor, the controller and the agent be run from this program.
func (p part) startResidents(ctx context.Context, orders relay.Orders) error {
	if err := relink(p.node.program, p.dir.Path(programLink)); err != nil {
		return err
	}
	if orders.Agents != nil {
		if err := relink(p.node.agent(orders), p.dir.Path(agentLink)); err != nil {
			return err
		}
	}
	if err := writeUnit(ctx, p.dir.Cluster, p.node.program, p.version()); err != nil {
		return err
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

// agent returns the file that agents are run from here: where what knows GPUs was not brought, as this host can't start
// it, that is this program, which knows none.
func (n *Node) agent(orders relay.Orders) string {
	if digest := orders.Agents[runtime.GOARCH]; digest != "" {
		file := filepath.Join(layout.Programs, digest, telemetry.AgentName)
		if _, err := os.Stat(file); !errors.Is(err, fs.ErrNotExist) {
			return file
		}
	}
	return n.program
}

// writeUnit has systemd run the supervisor whenever this host runs.
func writeUnit(ctx context.Context, cluster, program, version string) error {
	name := layout.SupervisorUnit(cluster)
	file := filepath.Join(layout.Units, name)
	text := []byte(fmt.Sprintf(unit, cluster, program, layout.Clusters, version))
	if present, err := os.ReadFile(file); err == nil && bytes.Equal(present, text) {
		return nil
	}
	if err := os.WriteFile(file, text, 0o644); err != nil { //nolint:gosec // unit files are for all to read
		return fmt.Errorf("the unit of the supervisor can't be written: %w", err)
	}
	if err := forgetStale(ctx, name); err != nil { // of an earlier cluster of the name
		return err
	}
	return systemctl(ctx, "enable", "--no-reload", "--quiet", name)
}

// forgetStale has systemd read its units again where it remembers another text of this one. Nothing else needs that,
// and it isn't free: it has systemd stop and think, and on a host with many units for long.
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

// residents returns the states of those that run here; none was ever started where there is no unit.
func (p part) residents(ctx context.Context) (domain.Residents, error) {
	if _, err := os.Stat(filepath.Join(layout.Units, layout.SupervisorUnit(p.dir.Cluster))); !errors.Is(err, fs.ErrNotExist) {
		return p.Residents(ctx)
	}
	ledger, err := p.ledger()
	absent := domain.Resident{
		State: domain.ResidentAbsent, Error: "never started, or removed",
		Advice: "The next apply that changes the cluster or a group starts it.",
	}
	return domain.Residents{Controller: absent, Agents: map[string]domain.Resident{ledger.Host: absent}}, err
}

// version tells what this host runs for the cluster from what it would run after a change of one of its programs.
func (p part) version() string {
	version := filepath.Base(filepath.Dir(p.node.program))
	if agent, err := os.Readlink(p.dir.Path(agentLink)); err == nil {
		version += "-" + filepath.Base(filepath.Dir(agent))
	}
	return version
}

// supervise starts the supervisor of a cluster, unless it runs. A unit that somebody removed is written anew.
func (n *Node) supervise(ctx context.Context, of engineKey) error {
	name := layout.SupervisorUnit(of.cluster)
	if _, err := os.Stat(filepath.Join(layout.Units, name)); errors.Is(err, fs.ErrNotExist) {
		if err := writeUnit(ctx, of.cluster, n.program, of.version); err != nil {
			return err
		}
	}
	return systemctl(ctx, "start", name)
}

func systemctl(ctx context.Context, arguments ...string) error {
	said := &bounded.Tail{Most: bounded.Complaint}
	command := exec.CommandContext(ctx, "systemctl", arguments...) //nolint:gosec // the arguments are ours
	command.Stderr = said
	if err := command.Run(); err != nil {
		return fmt.Errorf("systemctl %s: %w %s", strings.Join(arguments, " "), err, said)
	}
	return nil
}
