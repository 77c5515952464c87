package systemd

import (
	"context"
	"debug/elf"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/trainyard/terraform-provider-trainyard/internal/agent/telemetry"
	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/systemd/facts"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/systemd/install"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/systemd/layout"
	"github.com/trainyard/terraform-provider-trainyard/internal/sshclient"
)

// Program is what runs on hosts.
type Program struct {
	// File is the program's file; empty for that of the present process. Where it has a neighbour that knows GPUs, that
	// is the agent, see [telemetry.AgentProgram].
	File string
	// Binaries are further files, for hosts by their architecture; they go before those that are found.
	Binaries map[string]string
	// Local connects to the node of this machine, in this very process; nil where there can be none.
	Local func(ctx context.Context) (net.Conn, error)
}

// residents is the program that hosts run: this one, those for other architectures beside it, as a release has them, and
// those of the provider's configuration.
func (p Program) residents() install.Program {
	program := install.Program{Name: layout.ProgramName, Files: map[string]string{}}
	if file, err := p.file(); err == nil {
		for architecture := range machines {
			if neighbour := beside(file, layout.ProgramName+"_linux_"+architecture); runsOn(neighbour, architecture) == nil {
				program.Files[architecture] = neighbour
			}
		}
		if runtime.GOOS == "linux" {
			program.Files[runtime.GOARCH] = file
		}
	}
	maps.Copy(program.Files, p.Binaries)
	return program
}

// beside is the path of a file in the folder of another one, wherever a link to that is.
func beside(file, name string) string {
	if resolved, err := filepath.EvalSymlinks(file); err == nil {
		file = resolved
	}
	return filepath.Join(filepath.Dir(file), name)
}

// runsOn returns why a file is no program for hosts of an architecture, or nil.
func runsOn(file, architecture string) error {
	program, err := elf.Open(file)
	if errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err != nil {
		return fmt.Errorf("%s is no program for Linux: %w", file, err)
	}
	defer program.Close()
	if program.Machine != architectures[architecture] {
		return fmt.Errorf("%s is a program for another architecture than %s (%s)", file, architecture, program.Machine)
	}
	return nil
}

// architectures are those that hosts may have, as programs name them, and machines as uname -m does.
var (
	architectures = map[string]elf.Machine{"amd64": elf.EM_X86_64, "arm64": elf.EM_AARCH64}
	machines      = map[string]string{"amd64": "x86_64", "arm64": "aarch64"}
)

// check returns the problems of those of the configured programs that hosts need.
func (p Program) check(hosts map[string]facts.Facts) domain.Problems {
	var problems domain.Problems
	for _, name := range slices.Sorted(maps.Keys(hosts)) {
		architecture := hosts[name].Architecture
		file, given := p.Binaries[architecture]
		if !given {
			continue
		}
		if err := runsOn(file, architecture); err != nil {
			problems.Add(domain.Path{"hosts", domain.Key(name), "address"}, "No program for the architecture",
				"host %q is a machine of the architecture %s, and for those the provider's configuration has agent_binaries = { %s = %q }: %v",
				name, architecture, architecture, file, err)
		}
	}
	return problems
}

func (p Program) file() (string, error) {
	if p.File != "" {
		return p.File, nil
	}
	return os.Executable()
}

// agent returns the agent that knows GPUs, for hosts of an architecture, and false where there is none.
func (p Program) agent(architecture string) (agent install.File, found bool, err error) {
	program, found := p.residents().Files[architecture]
	if !found {
		return agent, false, nil
	}
	file := agentBeside(program, architecture)
	if file == "" || file == program {
		return agent, false, nil
	}
	agent, err = install.Open(telemetry.AgentName, file)
	return agent, err == nil, err
}

// agentBeside returns the file of the agent for hosts of an architecture, in the folder of a program; "" where there is none.
func agentBeside(program, architecture string) string {
	if file := beside(program, telemetry.AgentName+"_linux_"+architecture); runsOn(file, architecture) == nil {
		return file
	}
	if architecture == runtime.GOARCH && runtime.GOOS == "linux" {
		return telemetry.AgentProgram(program)
	}
	if file := beside(program, telemetry.AgentName); runsOn(file, architecture) == nil {
		return file
	}
	return ""
}

// agents returns the digests of the agents, by architecture.
func (p Program) agents() (map[string]string, error) {
	agents := map[string]string{}
	for _, architecture := range p.residents().Architectures() {
		agent, found, err := p.agent(architecture)
		if err != nil {
			return nil, err
		}
		if found {
			agents[architecture] = agent.Digest
		}
	}
	return agents, nil
}

// install brings a host what it runs.
func (p Program) install(ctx context.Context, client *sshclient.Client, f facts.Facts) error {
	program, err := p.residents().For(f.Architecture)
	if err != nil {
		return err
	}
	bring := []install.File{program}
	agent, found, err := p.agent(f.Architecture)
	if err != nil {
		return err
	}
	if found {
		bring = append(bring, agent)
	}
	return install.Install(ctx, client, f, bring...)
}

// relayScript runs the relay of a program, or says what is there instead: Trainyard of another version, or nothing.
const relayScript = `case $(uname -m) in %s *) p=;; esac; if [ -x "$p" ]; then if [ "$(id -u)" = 0 ]; then exec "$p" relay; else exec sudo -n "$p" relay; fi; fi; ` +
	`if [ -e %s ]; then echo "trainyard other"; else echo "trainyard absent"; fi`

// relayCommand is what runs the relay on a host.
func (r *reach) relayCommand() (string, error) {
	if r.peers != nil {
		return "relay", nil // the key is let in for nothing else
	}
	var choices strings.Builder
	programs := r.program.residents()
	for _, architecture := range programs.Architectures() {
		program, err := programs.For(architecture)
		if err != nil {
			return "", err
		}
		fmt.Fprintf(&choices, "%s) p=%s;; ", machines[architecture], program.Path())
	}
	return sshclient.Quote("sh", "-c", fmt.Sprintf(relayScript, choices.String(), layout.Clusters+"/"+r.cluster)), nil
}
