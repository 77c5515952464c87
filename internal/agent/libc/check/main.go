// Command check fails unless all programs run with the given version of glibc and all newer ones: check 2.31 FILE…
package main

import (
	"debug/elf"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/trainyard/terraform-provider-trainyard/internal/agent/libc"
)

// loadedLater is the prefix of NVIDIA's functions, which are looked up when they are called.
const loadedLater = "nvml"

func main() {
	if len(os.Args) < 3 {
		fmt.Fprintln(os.Stderr, "usage: check VERSION FILE…")
		os.Exit(2)
	}
	failed := false
	for _, file := range os.Args[2:] {
		if err := errors.Join(newer(file, os.Args[1]), unversioned(file)); err != nil {
			fmt.Fprintln(os.Stderr, err)
			failed = true
		}
	}
	if failed {
		os.Exit(1)
	}
}

func newer(file, allowed string) error {
	need, err := libc.Of(file)
	if err == nil && libc.Older(allowed, need.Glibc) {
		err = fmt.Errorf("%s requires glibc %s, and at most %s is allowed: objdump -T shows the symbols", file,
			need.Glibc, allowed)
	}
	return err
}

// unversioned returns an error for functions that no library was linked for; they may be missing at run time.
func unversioned(file string) error {
	program, err := elf.Open(file)
	if err != nil {
		return err
	}
	defer program.Close()
	functions, err := program.ImportedSymbols()
	if errors.Is(err, elf.ErrNoSymbols) {
		return nil // statically linked
	}
	for _, f := range functions {
		if f.Version == "" && !strings.HasPrefix(f.Name, loadedLater) {
			err = errors.Join(err,
				fmt.Errorf("%s calls %s, but is not linked with a library that has it", file, f.Name))
		}
	}
	return err
}
