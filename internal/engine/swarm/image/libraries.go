package image

import (
	"debug/elf"
	"fmt"
	"os/exec"
	"regexp"
	"strings"
)

// shared is a library as the dynamic loader lists it, such as "libc.so.6 => /lib/x86_64-linux-gnu/libc.so.6
// (0x00007f…)".
var shared = regexp.MustCompile(`(?m)=> (/\S+) \(0x`)

// Libraries returns what a dynamically linked program needs to run: the loader, and the libraries that it finds on this
// machine, each under its own path. A static program needs none.
func Libraries(program string) ([]File, error) {
	binary, err := elf.Open(program)
	if err != nil {
		return nil, fmt.Errorf("program %s is not a Linux executable: %w", program, err)
	}
	defer binary.Close()
	loader := ""
	for _, segment := range binary.Progs {
		if segment.Type != elf.PT_INTERP {
			continue
		}
		name := make([]byte, segment.Filesz)
		if _, err := segment.ReadAt(name, 0); err != nil {
			return nil, fmt.Errorf("reading program %s: %w", program, err)
		}
		loader = strings.TrimRight(string(name), "\x00")
	}
	if loader == "" {
		return nil, nil
	}
	list, err := exec.Command(loader, "--list", program).CombinedOutput() //nolint:gosec // it loads the program, but does not run it
	if err != nil {
		return nil, fmt.Errorf("finding the libraries of program %s: %w: %s", program, err, list)
	}
	paths := []string{loader}
	for _, found := range shared.FindAllStringSubmatch(string(list), -1) {
		if found[1] != loader {
			paths = append(paths, found[1])
		}
	}
	files := make([]File, len(paths))
	for i, path := range paths {
		if files[i], err = FromDisk(path, path); err != nil {
			return nil, err
		}
		files[i].Mode = 0o755
	}
	return files, nil
}
