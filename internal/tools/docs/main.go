// Command docs checks this repository's documentation: that links lead somewhere, that the index links every guide,
// that the troubleshooting guide quotes messages as the code has them, and that the README has the versions that are
// tested. It makes no requests.
package main

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
)

// checks return what is wrong with the documentation below a folder, one line each.
var checks = []func(root string) (wrong []string, err error){deadLinks, unlinkedGuides, staleMessages, staleVersions}

func main() {
	status := 0
	for _, check := range checks {
		wrong, err := check("../..")
		if err != nil {
			fmt.Fprintln(os.Stderr, "docs:", err)
			os.Exit(2)
		}
		for _, line := range wrong {
			fmt.Fprintln(os.Stderr, line)
			status = 1
		}
	}
	os.Exit(status)
}

// tracked returns the files of a working tree that match a pattern, except ignored ones.
func tracked(root, pattern string) ([]string, error) {
	files, err := exec.Command("git", "-C", root, "ls-files", "-z", "--cached", "--others", "--exclude-standard",
		pattern).Output()
	if err != nil {
		return nil, err
	}
	return strings.Split(strings.TrimRight(string(files), "\x00"), "\x00"), nil
}
