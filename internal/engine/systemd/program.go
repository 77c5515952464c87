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

	"github.com/trainyard/terraform-provider-trainyard/internal/agent/libc"
	"github.com/trainyard/terraform-provider-trainyard/internal/agent/telemetry"
	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/systemd/facts"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/systemd/install"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/systemd/layout"
	"github.com/trainyard/terraform-provider-trainyard/internal/sshclient"
)

// Program is what runs on hosts.
type Program struct {
	// File is the program's file; empty for that of this process. If there is an agent program next to it, that is the
	// agent, see [telemetry.AgentProgram].
	File string
	// Binaries are additional files for hosts, by architecture; they take precedence over those that are found.
	Binaries map[string]string
	// Local connects to the node of this machine within this process; nil if there can be none.
	Local func(ctx context.Context) (net.Conn, error)
}

// residents are the programs that hosts run: this one, those for other architectures next to it, as in a release, and
// those of the provider's configuration.
func (p Program) residents() install.Program {
	program := install.Program{Name: layout.ProgramName, Files: map[string]string{}}
	if file, err := p.file(); err == nil {
		for architecture := range machines {
			if neighbour := beside(file,
				layout.ProgramName+"_linux_"+architecture); runsOn(neighbour, architecture) == nil {
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

// beside returns the path of a file in the folder of another one, after resolving links.
func beside(file, name string) string {
	if resolved, err := filepath.EvalSymlinks(file); err == nil {
		file = resolved
	}
	return filepath.Join(filepath.Dir(file), name)
}

// runsOn returns why a file is not a program for hosts of an architecture, or nil.
func runsOn(file, architecture string) error {
	program, err := elf.Open(file)
	if errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err != nil {
		return fmt.Errorf("%s is not a Linux program: %w", file, err)
	}
	defer program.Close()
	if program.Machine != architectures[architecture] {
		return fmt.Errorf("%s is built for another architecture than %s (%s)", file, architecture, program.Machine)
	}
	return nil
}

// architectures are the supported ones of hosts, as programs name them, and machines as uname -m does.
var (
	architectures = map[string]elf.Machine{"amd64": elf.EM_X86_64, "arm64": elf.EM_AARCH64}
	machines      = map[string]string{"amd64": "x86_64", "arm64": "aarch64"}
)

// check returns the problems of hosts that can't run the programs for their architecture.
func (p Program) check(hosts map[string]facts.Facts) (problems domain.Problems, err error) {
	programs := p.residents()
	for _, name := range slices.Sorted(maps.Keys(hosts)) {
		f := hosts[name]
		file, known := programs.Files[f.Architecture]
		if !known {
			continue // reported by facts.Check
		}
		if _, given := p.Binaries[f.Architecture]; given {
			if err := runsOn(file, f.Architecture); err != nil {
				problems.Add(domain.Path{"hosts", domain.Key(name), "address"}, "No program for the architecture",
					"host %q has the architecture %s, for which the provider's configuration sets agent_binaries = { "+
						"%s = %q }: %v",
					name, f.Architecture, f.Architecture, file, err)
				continue
			}
		}
		need, err := libc.Of(file)
		if err != nil {
			return problems, err
		}
		facts.CheckProgram(&problems, name, f, file, need)
		agent, found, err := p.agent(f.Architecture)
		if err != nil {
			return problems, err
		}
		if found {
			facts.CheckAgent(&problems, name, f, agent.From, agent.need)
		}
	}
	return problems, nil
}

func (p Program) file() (string, error) {
	if p.File != "" {
		return p.File, nil
	}
	return os.Executable()
}

// agentFile is an agent, and what it needs from a host.
type agentFile struct {
	install.File
	need libc.Need
}

// agent returns the agent with GPU support for hosts of an architecture, and false if there is none.
func (p Program) agent(architecture string) (agent agentFile, found bool, err error) {
	program, found := p.residents().Files[architecture]
	if !found {
		return agent, false, nil
	}
	file, need, err := agentFor(program, architecture)
	if file == "" {
		return agent, false, nil
	}
	agent.need = need
	if err == nil || errors.Is(err, libc.ErrNoProgram) { // of a script, its start will tell
		agent.File, err = install.Open(telemetry.AgentName, file)
	}
	return agent, err == nil, err
}

// agentBeside returns the file of the agent for hosts of an architecture, in the folder of a program; "" if there is
// none.
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

// install installs the programs that a host runs.
func (p Program) install(ctx context.Context, host facts.Runner, f facts.Facts) error {
	files, err := p.filesFor(f)
	if err != nil {
		return err
	}
	return install.Install(ctx, host, f, files...)
}

// filesFor returns what a host runs, with an agent only if the host can start it.
func (p Program) filesFor(f facts.Facts) ([]install.File, error) {
	program, err := p.residents().For(f.Architecture)
	if err != nil {
		return nil, err
	}
	agent, found, err := p.agent(f.Architecture)
	if err != nil {
		return nil, err
	}
	if why, _ := f.CantStart(agent.From, agent.need); !found || why != "" {
		return []install.File{program}, nil
	}
	return []install.File{program, agent.File}, nil
}

// relayScript runs the relay of a program, or prints what is there instead: Trainyard of another version, or nothing.
const relayScript = `case $(uname -m) in %s *) p=;; esac; if [ -x "$p" ]; then if [ "$(id -u)" = 0 ]; then exec "$p" relay; else exec sudo -n "$p" relay; fi; fi; ` +
	`if [ -e %s ]; then echo "trainyard other"; else echo "trainyard absent"; fi`

// relayCommand is the command that runs the relay on a host.
func (r *reach) relayCommand() (string, error) {
	if r.peers != nil {
		return "relay", nil // all that the cluster's key allows
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
