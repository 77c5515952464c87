package systemd

import (
	"errors"

	"github.com/trainyard/terraform-provider-trainyard/internal/agent/libc"
)

// Needs are the files of the programs that hosts of an architecture run, and what these need of their C library.
type Needs struct {
	Program    string
	ForProgram libc.Need
	// Agent knows GPUs; it is "" where there is none that does.
	Agent    string
	ForAgent libc.Need
}

// Needs returns what hosts run, by their architecture.
func (p Program) Needs() (map[string]Needs, error) {
	all := map[string]Needs{}
	for architecture, file := range p.residents().Files {
		needs := Needs{Program: file}
		var err error
		if needs.ForProgram, err = libc.Of(file); err != nil {
			return nil, err
		}
		needs.Agent, needs.ForAgent, err = agentFor(file, architecture)
		if err != nil && !errors.Is(err, libc.ErrNoProgram) { // of a script, its start will tell
			return nil, err
		}
		all[architecture] = needs
	}
	return all, nil
}

// agentFor returns the agent that knows GPUs beside a program for hosts of an architecture, "" where there is none, and
// what it needs.
func agentFor(program, architecture string) (file string, need libc.Need, err error) {
	file = agentBeside(program, architecture)
	if file == "" || file == program {
		return "", need, nil
	}
	need, err = libc.Of(file)
	return file, need, err
}
