//go:build linux

package telemetry

import (
	"strings"
	"testing"
)

// FuzzListening: a table of sockets gives valid ports, or an error that quotes the faulty line.
func FuzzListening(f *testing.F) {
	const heading = "  sl  local_address rem_address   st tx_queue rx_queue\n"
	for _, lines := range []string{
		"", "   0: 00000000:1F40 00000000:0000 0A 00000000:00000000\n", "   0: 0100007F:FFFF 00000000:0000 0A\n",
		"0: :0 : 0A", "0: 0 0 0A", "1 2 3", "0: 00000000:10000 0 0A",
		"0: 00000000000000000000000000000000:1F90 00000000000000000000000000000000:0000 0A", strings.Repeat("a", 1<<17),
	} {
		f.Add(heading + lines)
	}
	f.Fuzz(func(t *testing.T, table string) {
		ports := map[int]bool{}
		err := addListening(ports, strings.NewReader(table))
		if lines := strings.Count(table, "\n"); len(ports) > lines {
			t.Errorf("%d lines yield %d ports", lines, len(ports))
		}
		for port := range ports {
			if port < 0 || port > 65535 {
				t.Errorf("%d is no port", port)
			}
		}
		if err != nil && len(err.Error()) > 10*len(table)+1000 { // what it quotes is escaped
			t.Errorf("the error has %d bytes of %d", len(err.Error()), len(table))
		}
	})
}

// FuzzContainerIn: a process is in the container that its cgroups name last, whatever their names.
func FuzzContainerIn(f *testing.F) {
	id := strings.Repeat("0123456789abcdef", 4)
	other := strings.Repeat("fedcba9876543210", 4)
	for _, groups := range []string{"", "0::/", "12:cpu:/docker/" + other, "0::/system.slice/docker-" + other +
		".scope", other[:63], other + other[:5], "0::/kubepods/" + other + "/" + other} {
		f.Add(groups)
	}
	f.Fuzz(func(t *testing.T, groups string) {
		if got := containerIn(groups); got != "" &&
			(len(got) != len(id) || strings.Trim(got, "0123456789abcdef") != "" || !strings.Contains(groups, got)) {
			t.Errorf("%q names %q", groups, got)
		}
		for _, inner := range []string{"/docker/" + id + "\n", "/system.slice/docker-" + id + ".scope\n"} {
			if got := containerIn(groups + inner); got != id {
				t.Errorf("%q names %q", groups+inner, got)
			}
		}
	})
}
