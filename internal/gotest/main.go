// Command gotest runs go test with its arguments, and prints a table of what took the time before go test's last line:
//
//	go run ./internal/gotest -short ./...
//
// The arguments after -then are for another go test, which runs once the first has ended; both are reported together:
//
//	go run ./internal/gotest -skip ^TestSystem ./... -then -run ^TestSystem ./internal/acceptance/...
//
// Existing runners print a summary of their own last; here, go test's line stays the last one.
package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"slices"
)

func main() {
	code, err := run(os.Args[1:], os.Stdout)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// programsVariable is the environment variable with a folder in which tests share the programs that they build.
const programsVariable = "TRAINYARD_TEST_PROGRAMS"

// then separates the arguments of several runs of go test.
const then = "-then"

// run runs go test, once or several times, and returns the largest exit code.
func run(args []string, out io.Writer) (code int, err error) {
	// Ctrl-C ends go test, and what it reported so far is still printed. Ignoring the signal here would make go test
	// ignore it as well.
	interrupted := make(chan os.Signal, 1)
	signal.Notify(interrupted, os.Interrupt)
	programs, err := os.MkdirTemp("", "trainyard-programs-")
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(programs)
	r := &report{programs: programs, out: out, verbose: slices.Contains(args, "-v"), skipped: map[string]int{}}
	for more := true; more && err == nil && len(interrupted) == 0; {
		var here []string
		here, args, more = cut(args)
		var failed int
		failed, err = r.test(here)
		code = max(code, failed)
	}
	r.end(code == 0 && err == nil)
	return code, err
}

// cut returns the arguments of the first go test, and those of the rest, if any.
func cut(args []string) (first, rest []string, more bool) {
	if i := slices.Index(args, then); i >= 0 {
		return args[:i], args[i+1:], true
	}
	return args, nil, false
}

// test runs go test and returns its exit code.
func (r *report) test(args []string) (code int, err error) {
	command := exec.Command("go", append([]string{"test", "-json"}, args...)...)
	command.Env = append(os.Environ(), programsVariable+"="+r.programs)
	command.Stderr = os.Stderr
	events, err := command.StdoutPipe()
	if err != nil {
		return 0, err
	}
	if err := command.Start(); err != nil {
		return 0, err
	}
	err = r.read(events)
	failure := command.Wait()
	if exit, ok := errors.AsType[*exec.ExitError](failure); ok {
		return max(exit.ExitCode(), 1), err // -1 means ended by a signal
	}
	return 0, errors.Join(err, failure)
}
