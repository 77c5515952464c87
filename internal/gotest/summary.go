package main

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// slowest is the number of tests in the table of the slowest.
const slowest = 20

// module is the prefix cut from package names.
const module = "github.com/trainyard/terraform-provider-trainyard/"

// end prints what was skipped and what took the time, and then go test's last line.
func (r *report) end(passed bool) {
	slices.SortStableFunc(r.packages, longest)
	slices.SortStableFunc(r.tests, longest)
	fmt.Fprint(r.out, "\nPackages, with their number of tests:\n")
	for _, p := range r.packages {
		if tests := r.number(func(t ended) bool { return t.pkg == p.pkg }); tests > 0 {
			r.row(p.took, fmt.Sprintf("%s (%d)", strings.TrimPrefix(p.pkg, module), tests))
		}
	}
	fmt.Fprint(r.out, "The slowest tests:\n")
	for _, t := range r.tests[:min(slowest, len(r.tests))] {
		r.row(t.took, strings.TrimPrefix(t.pkg, module)+" "+t.test)
	}
	if len(r.skipped) > 0 {
		fmt.Fprint(r.out, "Skipped:\n")
		for _, why := range slices.Sorted(maps.Keys(r.skipped)) {
			fmt.Fprintf(r.out, "%9d    %s\n", r.skipped[why], why)
		}
	}
	fmt.Fprintf(r.out, "%d tests ran, %d failed, and %d were skipped.\n",
		r.number(not(skipped)), r.number(failed), r.number(skipped))
	for _, t := range r.tests {
		if failed(t) && !t.within() {
			fmt.Fprintf(r.out, "    %s %s failed, see above.\n", strings.TrimPrefix(t.pkg, module), t.test)
		}
	}
	fmt.Fprint(r.out, "\n", r.last)
	if !passed {
		fmt.Fprintln(r.out, "FAIL")
	}
}

func failed(t ended) bool { return t.action == "fail" }

func skipped(t ended) bool { return t.action == "skip" }

func not(is func(ended) bool) func(ended) bool { return func(t ended) bool { return !is(t) } }

// number counts tests, without subtests.
func (r *report) number(counts func(ended) bool) (n int) {
	for _, t := range r.tests {
		if !t.within() && counts(t) {
			n++
		}
	}
	return n
}

func (r *report) row(took time.Duration, what string) {
	fmt.Fprintf(r.out, "%9.2f s  %s\n", took.Seconds(), what)
}

func longest(a, b ended) int { return cmp.Compare(b.took, a.took) }
