package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"time"
)

// event is an event of go test -json (go doc test2json, go help buildjson).
type event struct {
	Time                          time.Time
	Action, Package, Test, Output string
	Elapsed                       float64 // seconds
}

// report prints what go test prints without -json: the output of failing tests, and a line for each package.
type report struct {
	// programs is the folder in which tests share programs.
	programs string

	out     io.Writer
	verbose bool // print all output at once, also of passing tests

	pending  []*output // of tests that have not ended
	tests    []ended   // including subtests
	packages []ended
	skipped  map[string]int // number of tests by reason
	last     string         // the line of the last package that passed, held back until the end
}

// output is what a test wrote or, if test is empty, what its package wrote outside of tests.
type output struct {
	pkg, test string
	began     time.Time
	header    string // "--- FAIL: TestName (0.00s)"
	lines     []string
}

// ended is a test or a package that has ended.
type ended struct {
	pkg, test, action string
	took              time.Duration
}

func (e ended) within() bool { return strings.Contains(e.test, "/") }

// read prints until the events end.
func (r *report) read(events io.Reader) error {
	for lines := bufio.NewReader(events); ; {
		line, err := lines.ReadString('\n')
		var e event
		switch {
		case line == "":
		case json.Unmarshal([]byte(line), &e) != nil:
			fmt.Fprint(r.out, line) // written past the test framework
		default:
			r.take(e)
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

func (r *report) take(e event) {
	switch e.Action {
	case "build-output":
		fmt.Fprint(r.out, e.Output)
	case "run":
		r.of(e)
	case "output":
		r.write(e)
	case "pass", "fail", "skip":
		if e.Test == "" {
			r.endPackage(e)
		} else {
			r.endTest(e)
		}
	}
}

func (r *report) endTest(e event) {
	written := r.of(e)
	r.pending = slices.DeleteFunc(r.pending, func(o *output) bool { return o == written })
	r.tests = append(r.tests, ended{e.Package, e.Test, e.Action, seconds(e.Elapsed)})
	switch {
	case e.Action == "fail" && !r.verbose:
		r.print(written)
	case e.Action == "skip" && !strings.HasPrefix(e.Test, "Fuzz"): // a fuzz test's inputs may have nothing to show
		r.skipped[reason(written.lines)]++
	}
}

// endPackage records the end of a package. Any test that it interrupts counts as failed.
func (r *report) endPackage(e event) {
	this := ended{e.Package, "", e.Action, seconds(e.Elapsed)}
	// Another go test may have tested it before.
	if i := slices.IndexFunc(r.packages, func(p ended) bool { return p.pkg == e.Package }); i >= 0 {
		this.took += r.packages[i].took
		r.packages = slices.Delete(r.packages, i, i+1)
	}
	r.packages = append(r.packages, this)
	r.pending = slices.DeleteFunc(r.pending, func(o *output) bool {
		if o.pkg == e.Package && o.test != "" {
			r.tests = append(r.tests, ended{o.pkg, o.test, "fail", e.Time.Sub(o.began)})
		}
		return o.pkg == e.Package
	})
}

func seconds(n float64) time.Duration { return time.Duration(n * float64(time.Second)) }

// progress matches the lines that mark the start, pause and end of tests.
var progress = regexp.MustCompile(`^ *(=== (RUN|PAUSE|CONT|NAME) |--- (PASS|SKIP): |(PASS|FAIL)\n$)`)

func (r *report) write(e event) {
	if e.Test == "" && r.result(e) {
		return
	}
	if r.verbose {
		fmt.Fprint(r.out, e.Output)
	}
	o := r.of(e)
	switch {
	case progress.MatchString(e.Output):
	case strings.HasPrefix(strings.TrimLeft(e.Output, " "), "--- FAIL: "):
		o.header = e.Output
	default:
		o.lines = append(o.lines, e.Output)
	}
}

// result prints the line that ends a package, and reports whether this is such a line.
func (r *report) result(e event) bool {
	switch status, _, _ := strings.Cut(e.Output, "\t"); status {
	case "ok  ":
		fmt.Fprint(r.out, r.last)
		r.last = e.Output
	case "FAIL":
		if !r.verbose {
			r.printPending(e.Package)
		}
		fmt.Fprint(r.out, e.Output)
	case "?   ":
		fmt.Fprint(r.out, e.Output)
	default:
		return false
	}
	return true
}

// of returns the output so far of an event's test.
func (r *report) of(e event) *output {
	for _, o := range r.pending {
		if o.pkg == e.Package && o.test == e.Test {
			return o
		}
	}
	o := &output{pkg: e.Package, test: e.Test, began: e.Time}
	r.pending = append(r.pending, o)
	return o
}

// printPending prints the output of a package outside of tests, and of the tests that its end interrupts.
func (r *report) printPending(pkg string) {
	for _, o := range r.pending {
		if o.pkg == pkg {
			r.print(o)
		}
	}
}

func (r *report) print(o *output) { fmt.Fprint(r.out, o.header, strings.Join(o.lines, "")) }

// place matches the position in the code at the start of a log line.
var place = regexp.MustCompile(`^ *[^ ]+\.go:[0-9]+: `)

// reason is the first line of the reason for a skip, which is the last thing that the test logged.
func reason(lines []string) string {
	for _, line := range slices.Backward(lines) {
		if at := place.FindString(line); at != "" {
			return strings.TrimSpace(strings.TrimPrefix(line, at))
		}
	}
	return "no reason given"
}
