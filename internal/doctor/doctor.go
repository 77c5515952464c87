// Package doctor is the command "doctor", which examines hosts and says what they lack for the engines "swarm" and
// "systemd", and what mends it. It changes nothing there.
//
// What a host reports of itself (facts of the engine systemd, and details.go) becomes findings by the table of checks
// in finding.go, which is pure. The rest is the way to hosts (look.go, connect.go), and the report (report.go).
package doctor

import (
	"context"
	"errors"
	"flag"
	"io"

	"github.com/trainyard/terraform-provider-trainyard/internal/command"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/systemd"
)

// The exit codes. Without problems, it is 0.
const (
	// exitProblems is for hosts with problems.
	exitProblems = 1
	// exitUnknown is for hosts that could not be examined, and for arguments that make no sense.
	exitUnknown = 2
)

// Run examines the hosts in the arguments. What is not as it should be is a [command.ExitError]. The program's files
// are those that hosts would run.
func Run(ctx context.Context, args []string, program systemd.Program, out io.Writer) error {
	o, err := parseOptions(args)
	if errors.Is(err, flag.ErrHelp) {
		return nil
	}
	var programs map[string]systemd.Needs
	if err == nil {
		programs, err = program.Needs()
	}
	if err != nil {
		return &command.ExitError{Code: exitUnknown, Reason: "doctor: " + err.Error()}
	}
	report := sum(o.engines, examineAll(ctx, o.targets, programs, o.engines))
	write := report.writeText
	if o.json {
		write = report.writeJSON
	}
	if err := write(out); err != nil {
		return err
	}
	switch {
	case report.Unreachable > 0:
		return &command.ExitError{Code: exitUnknown, Reason: "doctor: not all hosts could be examined"}
	case report.Problems > 0:
		return &command.ExitError{Code: exitProblems, Reason: "doctor: found problems"}
	}
	return nil
}
