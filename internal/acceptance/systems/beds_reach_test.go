//go:build linux

package systems_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/filters"
	dockerswarm "github.com/docker/docker/api/types/swarm"
	"github.com/docker/docker/pkg/stdcopy"

	"github.com/trainyard/terraform-provider-trainyard/internal/acctest/testbed"
	"github.com/trainyard/terraform-provider-trainyard/internal/agent/statedir"
	"github.com/trainyard/terraform-provider-trainyard/internal/agent/units"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/systemd/layout"
)

// errNowhere says that no machine runs a member, such as during a restart.
var errNowhere = errors.New("it runs nowhere")

// reachHosts lets the site reach the members of bare hosts, which are units there.
func (s *site) reachHosts(t *testing.T, bed *testbed.Hosts) {
	files := statedir.Dir{Root: layout.Clusters, Cluster: "lab"}
	off := map[string]bool{}
	find := func(member string) (*testbed.Host, string, error) {
		// The name without the suffix for its instance, as a pattern, in which a backslash would have a special
		// meaning.
		name := strings.ReplaceAll(strings.TrimSuffix(units.Name("lab", member, ""), ".service"), `\`, "?")
		for _, host := range bed.Hosts {
			if off[host.Name] {
				continue
			}
			found, err := host.Run(t.Context(),
				fmt.Sprintf("systemctl list-units --plain --no-legend '%s*' | cut -d ' ' -f 1", name))
			if unit, _, _ := strings.Cut(strings.TrimSpace(found), "\n"); err != nil || unit != "" {
				return host, unit, err
			}
		}
		return nil, "", fmt.Errorf("%s: %w", member, errNowhere)
	}
	s.hostOf = func(member string) (string, error) {
		host, _, err := find(member)
		if err != nil {
			return "", err
		}
		return host.Name, nil
	}
	s.shell = func(member, command string) (string, error) {
		host, _, err := find(member)
		if err != nil {
			return "", err
		}
		return host.Run(t.Context(), command)
	}
	s.log = func(member string) (string, error) {
		var log strings.Builder
		for _, host := range bed.Hosts {
			if off[host.Name] {
				continue
			}
			text, err := host.Run(t.Context(), fmt.Sprintf("cat %s 2>/dev/null; :", files.Log(member)))
			if err != nil {
				return "", err
			}
			log.WriteString(text + "\n")
		}
		return log.String(), nil
	}
	s.kill = func(member, signal string) error {
		host, unit, err := find(member)
		if err == nil {
			_, err = host.Run(t.Context(), fmt.Sprintf("systemctl kill --signal %s '%s'", signal, unit))
		}
		return err
	}
	s.killController = func() error { return s.kill("trainyard-controller", "KILL") }
	s.killHost = func(i int) error {
		off[bed.Hosts[i].Name] = true
		return bed.Hosts[i].Kill()
	}
	s.bootHost = func(i int) error {
		err := bed.Hosts[i].Start(t.Context())
		off[bed.Hosts[i].Name] = err != nil
		return err
	}
	s.lose = func(role string, count int) error {
		member := fmt.Sprintf("%s-%d", role, count-1)
		host, _, err := find(member)
		if err == nil {
			_, err = host.Run(t.Context(), "rm "+files.Document(statedir.Specs, member))
		}
		return err
	}
}

// reachNodes lets the site reach the members of a Swarm, which are containers on its nodes.
func (s *site) reachNodes(t *testing.T, bed *testbed.Bed) {
	off := map[string]bool{}
	list := func(node *testbed.Node, service string, all bool) ([]container.Summary, error) {
		return node.Client().ContainerList(t.Context(), container.ListOptions{
			All: all, Filters: filters.NewArgs(filters.Arg("label", "com.docker.swarm.service.name="+service)),
		})
	}
	find := func(service string) (*testbed.Node, string, error) {
		for _, node := range bed.Nodes {
			if off[node.Name] {
				continue
			}
			found, err := list(node, service, false)
			if err != nil {
				return nil, "", err
			}
			if len(found) > 0 {
				return node, found[0].ID, nil
			}
		}
		return nil, "", fmt.Errorf("%s: %w", service, errNowhere)
	}
	s.hostOf = func(member string) (string, error) {
		node, _, err := find(member)
		if err != nil {
			return "", err
		}
		return node.Name, nil
	}
	s.shell = func(member, command string) (string, error) {
		node, id, err := find(member)
		if err != nil {
			return "", err
		}
		return execIn(t.Context(), node, id, command)
	}
	s.log = func(member string) (string, error) {
		var log bytes.Buffer
		for _, node := range bed.Nodes {
			if off[node.Name] {
				continue
			}
			found, err := list(node, member, true)
			for _, c := range found {
				err = errors.Join(err, copyLog(t.Context(), &log, node, c.ID))
			}
			if err != nil {
				return "", err
			}
		}
		return log.String(), nil
	}
	signal := func(service, signal string) error {
		node, id, err := find(service)
		if err == nil {
			err = node.Client().ContainerKill(t.Context(), id, signal)
		}
		return err
	}
	s.kill = signal
	from := http.Client{Transport: &http.Transport{DialContext: bed.DialContext}}
	s.fetch = func(name string, port int, path string) ([]byte, error) {
		node := bed.Nodes[slices.Index(s.hosts, name)]
		url := fmt.Sprintf("http://%s%s", netip.AddrPortFrom(node.Address, uint16(port)), path) //nolint:gosec // it is a port
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
		if err != nil {
			return nil, err
		}
		response, err := from.Do(request)
		if err != nil {
			return nil, err
		}
		defer response.Body.Close()
		return io.ReadAll(response.Body)
	}
	s.killController = func() error { return signal("trainyard-lab-controller", "KILL") }
	s.killHost = func(i int) error {
		off[bed.Nodes[i].Name] = true
		return bed.Nodes[i].Crash()
	}
	s.bootHost = func(i int) error {
		err := bed.Nodes[i].Restart(t.Context())
		if err == nil {
			err = bed.Await(t.Context(), bed.Nodes[i], dockerswarm.NodeStateReady)
		}
		off[bed.Nodes[i].Name] = err != nil
		return err
	}
	s.lose = func(role string, count int) error {
		docker, left := bed.Nodes[0].Client(), uint64(count-1) //nolint:gosec // it is small
		service, _, err := docker.ServiceInspectWithRaw(t.Context(), role, dockerswarm.ServiceInspectOptions{})
		if err == nil {
			spec := service.Spec
			spec.Mode.Replicated.Replicas = &left
			_, err = docker.ServiceUpdate(t.Context(), service.ID, service.Version, spec,
				dockerswarm.ServiceUpdateOptions{})
		}
		return err
	}
}

// copyLog copies the output of a container.
func copyLog(ctx context.Context, to io.Writer, node *testbed.Node, id string) error {
	log, err := node.Client().ContainerLogs(ctx, id, container.LogsOptions{ShowStdout: true, ShowStderr: true})
	if err != nil {
		return err
	}
	defer log.Close()
	_, err = stdcopy.StdCopy(to, to, log)
	return err
}

// get returns the content of a URL as a member reaches it; "" if nobody answers.
func (s *site) get(member, url string) string {
	const program = "import sys, urllib.request; print(urllib.request.urlopen(sys.argv[1]).read().decode())"
	content, err := s.shell(member, fmt.Sprintf("python3 -c '%s' '%s'", program, url))
	if err != nil {
		return ""
	}
	return content
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
