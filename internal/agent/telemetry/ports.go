//go:build linux

package telemetry

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
)

// socketTables list the TCP sockets of this network namespace; the second does not exist without IPv6.
var socketTables = []string{"/proc/self/net/tcp", "/proc/self/net/tcp6"}

// listening is the state of a TCP socket that accepts connections.
const listening = "0A"

// ListeningPorts returns the TCP ports on which something listens, on any address, in ascending order.
func ListeningPorts() ([]int, error) {
	ports := map[int]bool{}
	for _, table := range socketTables {
		f, err := os.Open(table)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("finding the ports in use: %w", err)
		}
		err = addListening(ports, f)
		_ = f.Close()
		if err != nil {
			return nil, fmt.Errorf("finding the ports in use: %s: %w", table, err)
		}
	}
	return slices.Sorted(maps.Keys(ports)), nil
}

// addListening adds the listening ports of a table of sockets. Its lines begin with a number, the local address as
// "<hex address>:<hex port>", the remote one, and the state.
func addListening(ports map[int]bool, table io.Reader) error {
	lines := bufio.NewScanner(table)
	lines.Scan() // the heading
	for lines.Scan() {
		fields := strings.Fields(lines.Text())
		if len(fields) < 4 {
			return fmt.Errorf("a line with %d fields: %q", len(fields), lines.Text())
		}
		if fields[3] != listening {
			continue
		}
		_, hex, _ := strings.Cut(fields[1], ":")
		port, err := strconv.ParseUint(hex, 16, 16)
		if err != nil {
			return fmt.Errorf("no port in %q: %w", fields[1], err)
		}
		ports[int(port)] = true
	}
	return lines.Err()
}
