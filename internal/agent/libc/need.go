// Package libc reads which dynamic loader and which glibc version a binary needs on the machine that runs it.
package libc

import (
	"debug/elf"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Need is what a program requires of a machine; the zero value is for a statically linked program, which requires
// nothing.
type Need struct {
	// Loader is the path of the dynamic loader that starts the program, such as /lib64/ld-linux-x86-64.so.2.
	Loader string
	// Glibc is the oldest version of glibc with everything that the program calls; "" for one with another C library.
	Glibc string
}

// prefix is the prefix of glibc's symbol versions.
const prefix = "GLIBC_"

// since maps symbol versions without a number to the glibc versions that introduced them.
var since = map[string]string{"GLIBC_ABI_DT_RELR": "2.36", "GLIBC_ABI_GNU_TLS": "2.42", "GLIBC_ABI_GNU2_TLS": "2.42"}

// ErrNoProgram is returned for a file that is no Linux executable, such as a script, whose requirements are unknown.
var ErrNoProgram = errors.New("is not a Linux program")

// Of returns the requirements of a Linux program, from its ELF header and sections.
func Of(file string) (Need, error) {
	program, err := elf.Open(file)
	if err != nil {
		return Need{}, fmt.Errorf("%s %w: %w", file, ErrNoProgram, err)
	}
	defer program.Close()
	need, err := of(program)
	if err != nil {
		return need, fmt.Errorf("reading the requirements of %s: %w", file, err)
	}
	return need, nil
}

func of(program *elf.File) (need Need, err error) {
	for _, segment := range program.Progs {
		if segment.Type != elf.PT_INTERP {
			continue
		}
		name := make([]byte, segment.Filesz)
		if _, err := segment.ReadAt(name, 0); err != nil {
			return need, err
		}
		need.Loader = strings.TrimRight(string(name), "\x00")
	}
	if need.Loader == "" || program.SectionByType(elf.SHT_GNU_VERNEED) == nil {
		return need, nil
	}
	libraries, err := program.DynamicVersionNeeds()
	if err != nil {
		return need, err
	}
	for _, library := range libraries {
		for _, version := range library.Needs {
			number, isGlibc := strings.CutPrefix(version.Dep, prefix)
			if !isGlibc {
				continue
			}
			if known := since[version.Dep]; known != "" {
				number = known
			}
			if _, err := parts(number); err != nil {
				return need, fmt.Errorf("it requires %s, which is not a known version of glibc", version.Dep)
			}
			if Older(need.Glibc, number) {
				need.Glibc = number
			}
		}
	}
	return need, nil
}

// Older reports whether a version precedes another one; "" precedes all others.
func Older(version, than string) bool {
	a, _ := parts(version)
	b, _ := parts(than)
	return slices.Compare(a, b) < 0
}

// parts returns the numbers of a version.
func parts(version string) (numbers []int, err error) {
	for part := range strings.SplitSeq(version, ".") {
		number, err := strconv.Atoi(part)
		if err != nil || number < 0 {
			return nil, errors.New("not a version")
		}
		numbers = append(numbers, number)
	}
	return numbers, nil
}
