//go:build linux

package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"syscall"
)

// takeCard takes memory of a simulated GPU for as long as this process lives. A file has a line per process, with its
// ID and its memory; memory of dead processes is free. If there is not enough left, the error is PyTorch's.
func takeCard(operand string) (err error) {
	path, sizes, _ := strings.Cut(operand, ",")
	need, all, _ := strings.Cut(sizes, ",")
	mib, errNeed := strconv.Atoi(need)
	most, errAll := strconv.Atoi(all)
	if err := errors.Join(errNeed, errAll); err != nil {
		return err
	}
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX); err != nil {
		return err
	}
	content, err := io.ReadAll(file)
	if err != nil {
		return err
	}
	taken := 0
	var kept strings.Builder
	for line := range strings.Lines(string(content)) {
		var pid, has int
		if _, err := fmt.Sscan(line, &pid, &has); err == nil && syscall.Kill(pid, 0) == nil {
			taken += has
			kept.WriteString(line)
		}
	}
	if taken+mib > most {
		return fmt.Errorf("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate %d.00 MiB. GPU 0 has a "+
			"total capacity of %d.00 MiB of which %d.00 MiB is free", mib, most, most-taken)
	}
	fmt.Fprintln(&kept, os.Getpid(), mib)
	_, err = file.WriteAt([]byte(kept.String()), 0)
	return errors.Join(err, file.Truncate(int64(kept.Len())))
}
