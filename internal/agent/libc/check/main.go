// Command check fails where a program needs a newer glibc than a version: check 2.31 FILE…
package main

import (
	"fmt"
	"os"

	"github.com/trainyard/terraform-provider-trainyard/internal/agent/libc"
)

func main() {
	if len(os.Args) < 3 {
		fmt.Fprintln(os.Stderr, "usage: check VERSION FILE…")
		os.Exit(2)
	}
	failed := false
	for _, file := range os.Args[2:] {
		need, err := libc.Of(file)
		switch {
		case err != nil:
			fmt.Fprintln(os.Stderr, err)
		case libc.Older(os.Args[1], need.Glibc):
			fmt.Fprintf(os.Stderr, "%s needs glibc %s, and may need %s at most: objdump -T shows what it calls of that\n", file, need.Glibc, os.Args[1])
		default:
			continue
		}
		failed = true
	}
	if failed {
		os.Exit(1)
	}
}
