//go:build linux

package telemetry

import (
	"bufio"
	"context"
	"errors"
	"log/slog"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/prometheus/procfs"

	"github.com/trainyard/terraform-provider-trainyard/internal/agent/proctree"
	"github.com/trainyard/terraform-provider-trainyard/internal/agent/units"
)

func TestTrafficOf(t *testing.T) {
	const host, agents, first, second = space(1), space(2), space(3), space(4)
	nothing, broken := math.NaN(), errors.New("systemd does not answer")
	in := func(s space, received, sent float64) network {
		return network{counted: counted{received, sent}, space: s}
	}
	for name, test := range map[string]struct {
		networks map[string]network
		own      space
		units    unitLook
		err      error
		want     map[string]traffic
	}{
		"networks of their own": {
			networks: map[string]network{
				"a": in(first, 5, 6), "b": in(second, 0, 0), "agent": in(agents, 7, 7),
			}, own: agents,
			want: map[string]traffic{
				"a": {counted: counted{5, 6}, in: first}, "b": {in: second}, "agent": {unknown: onSharedNetwork},
			},
		},
		"the host's network": {
			networks: map[string]network{"a": in(host, 0, 0), "b": in(first, 1, 2)}, own: host,
			want: map[string]traffic{"a": {unknown: onHostNetwork}, "b": {counted: counted{1, 2}, in: first}},
		},
		"one network for two": {
			networks: map[string]network{"a": in(first, 5, 6), "b": in(first, 5, 6)}, own: host,
			want: map[string]traffic{"a": {unknown: onSharedNetwork}, "b": {unknown: onSharedNetwork}},
		},
		"all in a network that is not the first process's": {
			networks: map[string]network{"a": in(agents, 5, 6)}, own: agents,
			want: map[string]traffic{"a": {unknown: onSharedNetwork}},
		},
		"units": {
			networks: map[string]network{
				"unit": in(host, 0, 0), "apart": in(first, 5, 6), "container": in(second, 7, 8), "v1": in(host, 0, 0),
			}, own: host,
			units: unitLook{
				counts: map[string]units.Traffic{"unit": {Received: 1, Sent: 2}, "apart": {Received: 3, Sent: 4}},
				rates:  map[string]counted{"unit": {8, 9}},
			},
			want: map[string]traffic{
				"unit":      {counted: counted{1, 2}, rates: &counted{8, 9}},
				"apart":     {counted: counted{3, 4}, rates: &counted{nothing, nothing}},
				"container": {counted: counted{7, 8}, in: second}, "v1": {unknown: onHostNetwork},
			},
		},
		"no answer of systemd": {
			networks: map[string]network{"a": in(host, 0, 0), "container": in(second, 7, 8)}, own: host,
			units: unitLook{err: broken},
			want: map[string]traffic{
				"a": {unknown: broken.Error()}, "container": {counted: counted{7, 8}, in: second},
			},
		},
		"whichever the host's is": {
			networks: map[string]network{"a": in(first, 0, 0)}, own: host, err: broken,
			want: map[string]traffic{"a": {unknown: broken.Error()}},
		},
		"ended": {
			networks: map[string]network{"a": {fault: "gone"}, "b": in(first, 5, 6)}, own: host,
			want: map[string]traffic{"a": {unknown: "gone"}, "b": {counted: counted{5, 6}, in: first}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := trafficOf(test.networks, [2]space{host, test.own}, test.units, test.err)
			if diff := cmp.Diff(test.want, got, cmp.AllowUnexported(traffic{}, counted{}),
				cmpopts.EquateNaNs()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestTrafficOfHost: what passes through several interfaces, one on top of another, counts once.
func TestTrafficOfHost(t *testing.T) {
	proc := t.TempDir()
	write := func(name, content string) {
		t.Helper()
		path := filepath.Join(proc, "1/net", name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700),
			os.WriteFile(path, []byte(content), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	for _, names := range []string{
		"lo eth0", "eth0 docker0 docker_gwbridge br-0a1b2c vethf00", "eth0 eth0.100 vlan7", "eth0 bond0 team0",
		"eth0 br0 vmbr1 virbr0 podman0 vnet3", "eth0 tap0 tun1 wg0 tailscale0 vxlan.calico vxlan42",
		"eth0 cni0 flannel.1 cali0123456789a", "eth0 uplink storage", "lo tap0", "ens1f0np0", "wlan0", "ib0", "bridge",
	} {
		table := "Inter-|   Receive  |  Transmit\n face |bytes |bytes\n"
		for name := range strings.FieldsSeq(names) {
			table += name + ": 100 0 0 0 0 0 0 0 10 0 0 0 0 0 0 0\n"
		}
		write("dev", table)
		if strings.Contains(names, "uplink") {
			write("bonding/uplink", "")
			write("vlan/config", "")
			write("vlan/storage", "")
		}
		fs, err := procfs.NewFS(proc)
		if err != nil {
			t.Fatal(err)
		}
		got, err := countInterfaces(fs, 1, Settings{Proc: proc}.inner())
		if err != nil || got != (counted{100, 10}) {
			t.Errorf("through %s: %+v (%v)", names, got, err)
		}
	}
}

func TestRates(t *testing.T) {
	nothing := math.NaN()
	at := func(in space, received, sent float64) traffic {
		return traffic{counted: counted{received, sent}, in: in}
	}
	for name, test := range map[string]struct {
		first, second  traffic
		received, sent float64
	}{
		"both known":               {at(3, 100, 10), at(3, 300, 10), 100, 0},
		"an interface went":        {at(3, 100, 10), at(3, 50, 30), 0, 10},
		"unknown at first":         {traffic{unknown: "so"}, at(3, 300, 10), nothing, nothing},
		"unknown by now":           {at(3, 100, 10), traffic{unknown: "so"}, nothing, nothing},
		"it moved to another":      {at(3, 100, 10), at(4, 300, 10), nothing, nothing},
		"systemd counts it by now": {at(3, 100, 10), traffic{rates: &counted{7, 8}}, 7, 8},
	} {
		received, sent := rates(test.first, test.second, 2*time.Second)
		same := func(a, b float64) bool { return a == b || math.IsNaN(a) && math.IsNaN(b) }
		if !same(received, test.received) || !same(sent, test.sent) {
			t.Errorf("%s: %v and %v", name, received, sent)
		}
	}
}

func TestUnitLook(t *testing.T) {
	var l unitLook
	begin := time.Unix(1_700_000_000, 0)
	for i, step := range []struct {
		at       int // in seconds
		counts   map[string]units.Traffic
		err      error
		received map[string]float64
	}{
		{0, map[string]units.Traffic{"a": {Received: 1000}}, nil, map[string]float64{"a": math.NaN()}},
		{
			5, map[string]units.Traffic{"a": {Received: 2000}, "b": {Received: 7}}, nil,
			map[string]float64{"a": 200, "b": math.NaN()},
		},
		{
			7, map[string]units.Traffic{"a": {Received: 1500}, "b": {Received: 9}}, nil,
			map[string]float64{"a": 0, "b": 1},
		},
		{9, nil, errors.New("no answer"), map[string]float64{}},
		{10, map[string]units.Traffic{"a": {Received: 3000}}, nil, map[string]float64{"a": math.NaN()}},
		{12, map[string]units.Traffic{"a": {Received: 3400}}, nil, map[string]float64{"a": 200}},
	} {
		l = l.then(begin.Add(time.Duration(step.at)*time.Second), step.counts, step.err)
		got := map[string]float64{}
		for _, id := range []string{"a", "b"} {
			if unit, found := l.of(id); found {
				got[id] = unit.rates.received
			}
		}
		if diff := cmp.Diff(step.received, got, cmpopts.EquateNaNs()); diff != "" || !errors.Is(l.err, step.err) {
			t.Errorf("look %d: %v, received in a second (-want +got):\n%s", i, l.err, diff)
		}
	}
}

// TestResidentReportsTraffic: the traffic of an instance with its own network is reported, and that of one on its
// host's only if systemd counts it; otherwise the reason is. The conformance suite shows that the values are above 0
// when they should be.
func TestResidentReportsTraffic(t *testing.T) {
	apart, unit, other := t.Name()+"-apart", t.Name()+"-unit", t.Name()+"-other"
	startApart(t, apart)
	start(t, unit, "echo ready; read never")
	start(t, other, "echo ready; read never")
	calls := uint64(0)
	on := settings(nil)
	on.Units = func(context.Context) (map[string]units.Traffic, error) {
		calls++
		return map[string]units.Traffic{unit: {Received: 1000 * calls, Sent: 1 << 40 * calls}}, nil
	}
	r, err := NewResident(t.Context(), on, "", slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	instances := r.Report(Interval).Instances
	if i := instances[apart]; i.ReceivedBps.Last == nil || *i.ReceivedBps.Last != 0 || i.SentBytes == nil ||
		*i.SentBytes != 0 || i.TrafficUnknown != "" {
		t.Errorf("one with a network without interfaces: %+v", i)
	}
	if i := instances[unit]; i.ReceivedBps.Last == nil || *i.ReceivedBps.Last <= 0 || i.ReceivedBytes == nil ||
		*i.ReceivedBytes != 2000 || *i.SentBytes != 1<<41 {
		t.Errorf("one that systemd counts: %+v", i)
	}
	if i := instances[other]; i.ReceivedBps.Last != nil || i.SentBps.Mean != nil || i.ReceivedBytes != nil ||
		i.SentBytes != nil || i.TrafficUnknown != onHostNetwork {
		t.Errorf("one that nobody counts: %+v", i)
	}
}

// startApart starts an instance with its own network namespace, which ends with the test.
func startApart(t testing.TB, instance string) {
	t.Helper()
	cmd := exec.Command("/bin/sh", "-c", "echo ready; read never")
	cmd.Env = append(os.Environ(), proctree.InstanceVariable+"="+instance)
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	err = cmd.Start()
	if errors.Is(err, syscall.EPERM) && os.Geteuid() != 0 {
		t.Skip("it takes root to have a network of one's own")
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil || line != "ready\n" {
		t.Fatalf("it said %q, %v", line, err)
	}
}
