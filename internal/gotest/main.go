// Command gotest runs go test with its arguments, and tells before go test's last line what took the time:
//
//	go run ./internal/gotest -short ./...
//
// Ready-made runners print a summary of their own last; here the last line stays go test's.
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

// run runs go test, and returns its exit code.
func run(args []string, out io.Writer) (code int, err error) {
	command := exec.Command("go", append([]string{"test", "-json"}, args...)...)
	command.Stderr = os.Stderr
	events, err := command.StdoutPipe()
	if err != nil {
		return 0, err
	}
	// Ctrl-C ends go test, and what was told by then is still printed. To ignore it would have go test ignore it, too.
	signal.Notify(make(chan os.Signal, 1), os.Interrupt)
	if err := command.Start(); err != nil {
		return 0, err
	}
	r := &report{out: out, verbose: slices.Contains(args, "-v"), skipped: map[string]int{}}
	err = r.read(events)
	failure := command.Wait()
	r.end(failure == nil)
	if exit, ok := errors.AsType[*exec.ExitError](failure); ok {
		return max(exit.ExitCode(), 1), err // -1 is the death by a signal
	}
	return 0, errors.Join(err, failure)
}
