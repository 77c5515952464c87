//go:build linux

package systems_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/filters"
	"github.com/docker/docker/pkg/stdcopy"

	"github.com/trainyard/terraform-provider-trainyard/internal/acctest/testbed"
	"github.com/trainyard/terraform-provider-trainyard/internal/agent/units"
)

// errNowhere says that no machine runs a member, such as during a restart.
var errNowhere = errors.New("it runs nowhere")

// reachHosts lets the site reach the members of bare hosts, which are units there.
func (s *site) reachHosts(t *testing.T, bed *testbed.Hosts) {
	find := func(member string) (*testbed.Host, string, error) {
		// The name without the suffix for its instance, as a pattern, in which a backslash would have a special
		// meaning.
		name := strings.ReplaceAll(strings.TrimSuffix(units.Name("lab", member, ""), ".service"), `\`, "?")
		for _, host := range bed.Hosts {
			found, err := host.Run(t.Context(), fmt.Sprintf("systemctl list-units --plain --no-legend '%s*' | cut -d ' ' -f 1", name))
			if unit, _, _ := strings.Cut(strings.TrimSpace(found), "\n"); err != nil || unit != "" {
				return host, unit, err
			}
		}
		return nil, "", fmt.Errorf("%s: %w", member, errNowhere)
	}
	s.shell = func(member, command string) (string, error) {
		host, _, err := find(member)
		if err != nil {
			return "", err
		}
		return host.Run(t.Context(), command)
	}
	s.kill = func(member, signal string) error {
		host, unit, err := find(member)
		if err == nil {
			_, err = host.Run(t.Context(), fmt.Sprintf("systemctl kill --signal %s '%s'", signal, unit))
		}
		return err
	}
	s.killController = func() error { return s.kill("trainyard-controller", "KILL") }
}

// reachNodes lets the site reach the members of a Swarm, which are containers on its nodes.
func (s *site) reachNodes(t *testing.T, bed *testbed.Bed) {
	find := func(service string) (*testbed.Node, string, error) {
		for _, node := range bed.Nodes {
			found, err := node.Client().ContainerList(t.Context(), container.ListOptions{
				Filters: filters.NewArgs(filters.Arg("label", "com.docker.swarm.service.name="+service)),
			})
			if err != nil {
				return nil, "", err
			}
			if len(found) > 0 {
				return node, found[0].ID, nil
			}
		}
		return nil, "", fmt.Errorf("%s: %w", service, errNowhere)
	}
	s.shell = func(member, command string) (string, error) {
		node, id, err := find(member)
		if err != nil {
			return "", err
		}
		return execIn(t.Context(), node, id, command)
	}
	signal := func(service, signal string) error {
		node, id, err := find(service)
		if err == nil {
			err = node.Client().ContainerKill(t.Context(), id, signal)
		}
		return err
	}
	s.kill = signal
	s.killController = func() error { return signal("trainyard-lab-controller", "KILL") }
}

// execIn runs a command in a container, and returns its output.
func execIn(ctx context.Context, node *testbed.Node, id, command string) (string, error) {
	docker := node.Client()
	created, err := docker.ContainerExecCreate(ctx, id, container.ExecOptions{
		Cmd: []string{"/bin/sh", "-c", command}, AttachStdout: true, AttachStderr: true,
	})
	if err != nil {
		return "", err
	}
	attached, err := docker.ContainerExecAttach(ctx, created.ID, container.ExecAttachOptions{})
	if err != nil {
		return "", err
	}
	defer attached.Close()
	var written bytes.Buffer
	if _, err := stdcopy.StdCopy(&written, &written, attached.Reader); err != nil {
		return "", err
	}
	ended, err := docker.ContainerExecInspect(ctx, created.ID)
	if err == nil && ended.ExitCode != 0 {
		err = fmt.Errorf("%q ends with %d: %s", command, ended.ExitCode, &written)
	}
	return written.String(), err
}
