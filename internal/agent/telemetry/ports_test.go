//go:build linux

package telemetry

import (
	"maps"
	"net"
	"slices"
	"strings"
	"testing"
)

func TestListeningPorts(t *testing.T) {
	port := func(address net.Addr) int {
		tcp, ok := address.(*net.TCPAddr)
		if !ok {
			t.Fatalf("%v is no TCP address", address)
		}
		return tcp.Port
	}
	listen := func(network, address string) net.Listener {
		listener, err := net.Listen(network, address)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = listener.Close() })
		return listener
	}
	one, all := listen("tcp4", "127.0.0.1:0"), listen("tcp", ":0")
	connection, err := net.Dial("tcp", one.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = connection.Close() }()

	ports, err := ListeningPorts()
	if err != nil {
		t.Fatal(err)
	}
	for address, want := range map[net.Addr]bool{one.Addr(): true, all.Addr(): true, connection.LocalAddr(): false} {
		if got := slices.Contains(ports, port(address)); got != want {
			t.Errorf("%s listens: %v, want %v", address, got, want)
		}
	}
	if !slices.IsSorted(ports) || len(slices.Compact(slices.Clone(ports))) != len(ports) {
		t.Errorf("%v is not in order, each once", ports)
	}
}

func TestAddListening(t *testing.T) {
	const heading = "  sl  local_address rem_address   st tx_queue rx_queue\n"
	for name, test := range map[string]struct {
		table   string
		want    []int
		problem string
	}{
		"empty": {table: heading},
		"listening and connected, version 4": {
			table: heading +
				"   0: 0100007F:1F90 00000000:0000 0A 00000000:00000000\n" +
				"   1: 0100007F:0016 0100007F:C350 01 00000000:00000000\n",
			want: []int{8080},
		},
		"version 6, one port on two addresses": {
			table: heading +
				"   0: 00000000000000000000000000000000:FFFF 00000000000000000000000000000000:0000 0A 0:0\n" +
				"   1: 00000000000000000000000001000000:FFFF 00000000000000000000000000000000:0000 0A 0:0\n",
			want: []int{65535},
		},
		"a short line":  {table: heading + "   0: 0100007F:1F90\n", problem: "a line with 2 fields"},
		"no port in it": {table: heading + "   0: 0100007F 0:0 0A 0:0\n", problem: `no port in "0100007F"`},
	} {
		t.Run(name, func(t *testing.T) {
			ports := map[int]bool{}
			err := addListening(ports, strings.NewReader(test.table))
			if test.problem == "" && err != nil ||
				test.problem != "" && (err == nil || !strings.Contains(err.Error(), test.problem)) {
				t.Errorf("error %v, want %q", err, test.problem)
			}
			if got := slices.Sorted(maps.Keys(ports)); !slices.Equal(got, test.want) {
				t.Errorf("%v, want %v", got, test.want)
			}
		})
	}
}
