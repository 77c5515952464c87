//go:build linux

package process_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// The hook checks commits of many files, too.
func TestPreCommit(t *testing.T) {
	repository, programs := t.TempDir(), t.TempDir()
	hook, err := filepath.Abs(filepath.Join(root, ".github/hooks/pre-commit"))
	if err != nil {
		t.Fatal(err)
	}
	env := append(os.Environ(), "PATH="+programs+":"+os.Getenv("PATH"))
	run := func(input, name string, args ...string) string {
		t.Helper()
		command := exec.Command(name, args...)
		command.Dir, command.Env, command.Stdin = repository, env, strings.NewReader(input)
		output, err := command.CombinedOutput()
		if err != nil {
			t.Fatalf("%s %q: %v\n%s", name, args, err, output)
		}
		return string(output)
	}
	for _, program := range []string{"go", "make"} {
		content := []byte("#!/bin/sh\necho " + program + " \"$@\"\n")
		err := os.WriteFile(filepath.Join(programs, program), content, 0o700) //nolint:gosec // it is to be run
		if err != nil {
			t.Fatal(err)
		}
	}
	run("", "git", "init", "--quiet")
	empty := strings.TrimSpace(run("", "git", "hash-object", "-w", "--stdin"))
	// More than a pipe holds after the first match.
	var staged strings.Builder
	for _, file := range []string{"examples/%d-%s.go", "z/%d-%s.txt"} {
		for i := range 4000 {
			fmt.Fprintf(&staged, "100644 %s\t"+file+"\n", empty, i, strings.Repeat("x", 100))
		}
	}
	run(staged.String(), "git", "update-index", "--index-info")
	got, want := run("", hook), "go tool -modfile=internal/tools/go.mod golangci-lint run --new-from-rev=HEAD\n"+
		"make --no-print-directory check-generate\n"
	if got != want {
		t.Errorf("it runs\n%s\nwant\n%s", got, want)
	}
}

// Benchmarks start engines and hosts, and build the agent: their targets install what that needs, and run as root.
func TestBenchTargets(t *testing.T) {
	targets := regexp.MustCompile(`(?m)^(bench[a-z-]*):.*\n((?:\t.*\n)+)`)
	recipes := targets.FindAllStringSubmatch(read(t, "GNUmakefile"), -1)
	if len(recipes) < 2 {
		t.Errorf("there are the targets %q, want bench and bench-systems", recipes)
	}
	for _, recipe := range recipes {
		for _, want := range []string{"$(PACKAGES) $(COMPILER) $(ENGINES)", "$(IN_BEDS) internal/bench/run.sh"} {
			if !strings.Contains(recipe[2], want) {
				t.Errorf("%s does not run %s", recipe[1], want)
			}
		}
	}
}
