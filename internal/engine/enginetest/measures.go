package enginetest

import (
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/trainyard/terraform-provider-trainyard/internal/acctest"
	"github.com/trainyard/terraform-provider-trainyard/internal/agent/nvml/fakenvml"
	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
	"github.com/trainyard/terraform-provider-trainyard/internal/reconcile"
)

// GPUs is what the suite needs from an engine's own tests to drive the GPUs of hosts.
type GPUs struct {
	// Open is like the harness's, for hosts with a driver of [fakenvml]'s whose library lacks only the function
	// [Lacking].
	Open func(t *testing.T, cluster string) engine.Engine
	// Driver is the driver of the harness's host.
	Driver func(t *testing.T, e engine.Engine) Driver
	// Another opens the engine of the same cluster again, as another program would.
	Another func(t *testing.T, e engine.Engine) engine.Engine
	// Process returns the ID of a process of a running member, as seen on the host.
	Process func(t *testing.T, e engine.Engine, member string) int
	// Stranger is the ID of a process on the host that belongs to no member.
	Stranger int
}

// Driver sets what the driver of a host's GPUs reports; see [fakenvml.Control].
type Driver interface {
	Set(devices ...fakenvml.Device)
	Break(faults fakenvml.Faults)
}

// Lacking is a function that the library of the suite's drivers lacks, as an older one does, so that the temperature is
// unknown.
const Lacking = "nvmlDeviceGetTemperature"

const (
	// The first devices are those of the group's members, and a stranger uses the next one.
	allDevices  = 8
	ownDevices  = 2
	takenDevice = ownDevices
	freeDevices = allDevices - ownDevices - 1
	// usedMiB is how much memory a process uses on a device.
	usedMiB = 1000
	// thePool has all devices; this number of applies request one each.
	thePool = "p"
	applies = 20
)

// machine is the host of the suite with its GPUs, and the expected report of them.
type machine struct {
	Harness
	engine  engine.Engine
	driver  Driver
	devices []fakenvml.Device
	want    []domain.GPU
}

// testMeasures runs in one cluster, as creating one takes long, and tests what is reported of hosts and members, and
// faults of a host's GPUs. The readings of single GPUs are tested in agent/nvml.
func testMeasures(t *testing.T, h Harness) {
	h.Open = h.GPUs.Open
	m := &machine{Harness: h, engine: h.cluster(t)}
	m.driver = h.GPUs.Driver(t, m.engine)
	m.devices = fakenvml.V100s(h.lab, allDevices)
	for i, d := range m.devices {
		m.want = append(m.want, asReported(d, i))
		for _, peer := range []int{i &^ 3, i&^3 + 1, i&^3 + 2, i&^3 + 3} {
			if peer != i {
				m.want[i].Links = append(m.want[i].Links, m.devices[peer].UUID)
			}
		}
	}
	for _, part := range []struct { // each continues from the one before
		name string
		test func(*machine, *testing.T)
	}{
		{"hosts and members", (*machine).used},
		{"traffic of members", (*machine).traffic},
		{"GPUs", (*machine).listed},
		{"GPUs of members", (*machine).given},
		{"GPUs used by processes", (*machine).occupied},
		{"GPUs wanted by concurrent applies", (*machine).wanted},
		{"GPUs that fail", (*machine).failing},
		{"GPUs that hang", (*machine).hanging},
	} {
		if !t.Run(part.name, func(t *testing.T) { part.test(m, t) }) {
			return
		}
	}
}

// asReported returns the expected report, except for links, of a device of [fakenvml.V100s] by an agent whose library
// lacks [Lacking].
func asReported(d fakenvml.Device, index int) domain.GPU {
	return domain.GPU{
		Device: domain.Device{UUID: d.UUID, Model: d.Name, MemoryMiB: d.MemoryMiB, NUMANode: d.NUMANode},
		Index:  index, PCIBusID: d.PCIBusID,
		MemoryUsedMiB: new(d.UsedMiB), MemoryFreeMiB: new(d.MemoryMiB - d.ReservedMiB - d.UsedMiB),
		Utilisation: new(0.0), MemoryUtilisation: new(0.0), PowerW: new(42.5), PowerLimitW: new(300.0),
		ECCErrors: new(int64(0)), MIG: new(false), Processes: []domain.GPUProcess{},
		Unknown: "the driver's library lacks " + Lacking + ": update the driver",
	}
}

// found returns the reported GPUs of the machine. The other hosts must always report that they have none.
func (m *machine) found(t *testing.T) domain.HostGPUs {
	t.Helper()
	var found map[string]domain.HostGPUs
	acctest.Eventually(t, "what is reported of the neighbours", func() bool { // whose agents may be too busy to answer
		var err error
		found, err = m.engine.GPUs(t.Context())
		must(t, err)
		complete := true
		for host, gpus := range found {
			complete = complete && (host == m.Host || gpus.Unknown == "")
		}
		return complete
	})
	for host, gpus := range found {
		if host != m.Host && len(gpus.GPUs) > 0 {
			t.Errorf("host %s, which has none, has the GPUs %+v", host, gpus)
		}
	}
	return found[m.Host]
}

// shows makes the driver report the current devices, and returns once they are reported.
func (m *machine) shows(t *testing.T) {
	t.Helper()
	m.driver.Set(m.devices...)
	m.awaitGPUs(t)
}

// awaitGPUs returns once the wanted GPUs are reported.
func (m *machine) awaitGPUs(t *testing.T) {
	t.Helper()
	var diff string
	defer func() {
		if diff != "" {
			t.Logf("GPUs (-want +got):\n%s", diff)
		}
	}()
	acctest.Eventually(t, "what is reported of GPUs", func() bool {
		found := m.found(t)
		diff = found.Unknown + cmp.Diff(m.want, found.GPUs, cmpopts.EquateEmpty(),
			cmpopts.IgnoreFields(domain.GPU{}, "XIDAt", "GoneAt"),

			cmp.Comparer(func(a, b domain.Condemnation) bool { return a.XID == b.XID }),
			cmpopts.IgnoreFields(domain.GPUProcess{}, "Command", "Instance"))
		return diff == ""
	})
}

// usage returns what is used, over a minute, once all hosts report: an agent may be too busy to answer.
func (m *machine) usage(t *testing.T) (usage engine.Usage) {
	t.Helper()
	acctest.Eventually(t, "what hosts use", func() bool {
		var err error
		usage, err = m.engine.Usage(t.Context(), time.Minute)
		must(t, err)
		complete := len(usage.Hosts) > 0
		for _, host := range usage.Hosts {
			complete = complete && host.Reason == ""
		}
		return complete
	})
	return usage
}

// is reports whether a value is known and equal to want.
func is(value *float64, want float64) bool { return value != nil && *value == want }

// used: hosts and members have their usage reported.
func (m *machine) used(t *testing.T) {
	start(t, m.engine, m.member(0, "wait"), m.member(1, "exit:0"))
	m.awaitStates(t, m.engine, domain.StateRunning, domain.StateCompleted)
	var usage engine.Usage
	acctest.Eventually(t, "the agents, which have just been started", func() bool {
		usage = m.usage(t)
		complete := true
		for _, host := range usage.Hosts {
			complete = complete && host.GPUsReason == ""
		}
		return complete
	})
	for name, host := range usage.Hosts {
		if host.CPUs.Last == nil || host.MemoryMiB.P95 == nil || *host.MemoryMiB.Mean <= 0 || host.Load.Last == nil ||
			*host.DiskMiB.Last <= 0 || host.SentBps.Max == nil || host.TotalCPUs <= 0 || host.SampledAt.IsZero() {
			t.Errorf("host %s uses %+v", name, host)
		}
	}
	runs, ended := usage.Members[m.memberName(0)], usage.Members[m.memberName(1)]
	if runs.MemoryMiB.Last == nil || *runs.MemoryMiB.Max <= 0 || runs.CPUs.Last == nil || runs.SampledAt.IsZero() {
		t.Errorf("a member that runs uses %+v", runs)
	}
	if runs.Group != m.group || runs.Role != "worker" || runs.Host != m.Host || runs.State != domain.StateRunning {
		t.Errorf("what a member uses says of it: %+v", runs)
	}
	if ended.MemoryMiB.Last != nil || ended.CPUs.Last != nil || ended.Reason == "" {
		t.Errorf("a member that ended uses %+v", ended)
	}
	must(t, m.engine.Remove(acctest.Bounded(t), []string{m.memberName(0), m.memberName(1)}))
	m.awaitStates(t, m.engine)
}

// traffic: the network traffic of members that talk to each other is reported; if it can't be measured, the reason is.
func (m *machine) traffic(t *testing.T) {
	const port = "9100"
	taking, sending := []string{"wait"}, []string{"wait"}
	if m.Traffic != nil {
		taking, sending = []string{
			"swallow:" + port,
		}, []string{"send:" + net.JoinHostPort(m.Traffic(m.memberName(0)), port)}
	}
	start(t, m.engine, m.member(0, taking...), m.member(1, sending...), m.member(2, "wait"))
	m.awaitStates(t, m.engine, domain.StateRunning, domain.StateRunning, domain.StateRunning)
	var takes, sends, idle engine.MemberUsage
	defer func() {
		if t.Failed() {
			t.Logf("one that takes what is sent uses %+v, one that sends %+v, and another %+v", takes, sends, idle)
		}
	}()
	acctest.Eventually(t, "samples of what members send", func() bool {
		members := m.usage(t).Members
		takes, sends, idle = members[m.memberName(0)], members[m.memberName(1)], members[m.memberName(2)]
		if m.Traffic == nil {
			return takes.CPUs.Last != nil && sends.CPUs.Last != nil && idle.CPUs.Last != nil
		}
		return atLeast(takes.ReceivedBps.Last, flow/2) && atLeast(sends.SentBps.Last, flow/2) &&
			idle.SentBps.Last != nil
	})
	if m.Traffic == nil {
		for _, u := range []engine.MemberUsage{takes, sends, idle} {
			if u.ReceivedBps != (domain.Measure{}) || u.SentBps != (domain.Measure{}) || u.WhyNoTraffic() == "" ||
				u.Reason != "" {
				t.Errorf("what nobody counts is reported: %+v", u)
			}
		}
	} else {
		for _, u := range []engine.MemberUsage{takes, sends, idle} {
			if u.WhyNoTraffic() != "" || u.ReceivedBps.P95 == nil || u.SentBps.Mean == nil {
				t.Errorf("of a member it is not known what it receives and sends: %+v", u)
			}
		}
		if back := *takes.SentBps.Last; back > *takes.ReceivedBps.Last/2 || *idle.ReceivedBps.Max > flow/10 ||
			*idle.SentBps.Max > flow/10 {
			t.Error("one that sends nothing, or next to nothing, does")
		}
	}
	must(t, m.engine.Remove(acctest.Bounded(t), []string{m.memberName(0), m.memberName(1), m.memberName(2)}))
	m.awaitStates(t, m.engine)
}

// flow is how many bytes per second a member sends, at most.
const flow = 640 << 10

func atLeast(value *float64, want float64) bool { return value != nil && *value >= want }

// listed: GPUs are reported with everything known about them, and changes show. What an older driver lacks is unknown,
// with the reason.
func (m *machine) listed(t *testing.T) {
	m.shows(t)
	m.devices[1].Utilisation, m.want[1].Utilisation = 97, new(97.0)
	m.devices[1].UsedMiB, m.want[1].MemoryUsedMiB, m.want[1].MemoryFreeMiB = 200, new(int64(200)),
		new(m.devices[1].MemoryMiB-m.devices[1].ReservedMiB-200)
	m.shows(t)
	var usage map[string]engine.GPUUsage
	defer func() {
		if t.Failed() {
			t.Logf("of %d GPUs one is used as %+v", len(usage), usage[m.devices[1].UUID])
		}
	}()
	acctest.Eventually(t, "a sample of that", func() bool {
		usage = m.usage(t).GPUs
		u := usage[m.devices[1].UUID]
		return len(usage) == allDevices && u.Host == m.Host && is(u.Utilisation.Last, 97) &&
			is(u.Utilisation.Max, 97) && is(u.MemoryMiB.Last, 200) &&
			u.TemperatureC.Last == nil && u.Reason == m.want[1].Unknown && u.Members != nil && len(u.Members) == 0
	})
}

// job returns a group of workers with a device each, which print the devices they find.
func (m *machine) job(name string, workers int) domain.Group {
	g := m.Harness.job(workers, "environment:NVIDIA_VISIBLE_DEVICES", "environment:CUDA_VISIBLE_DEVICES", "wait")
	g.Name = name
	g.Roles["worker"] = domain.Role{Replicas: &workers, GPUs: &domain.GPURequest{Pool: thePool, Count: new(1)}}
	return g
}

// given: members find the devices that they were given.
func (m *machine) given(t *testing.T) {
	r := reconcile.Reconciler{Engine: m.engine}
	var uuids []string
	for _, d := range m.devices {
		uuids = append(uuids, d.UUID)
	}
	_, err := r.PutPool(acctest.Bounded(t),
		domain.GPUPool{Cluster: m.lab, Name: thePool, Devices: map[string][]string{m.Host: uuids}}, true, nil)
	must(t, err)
	must(t, r.Update(acctest.Bounded(t), m.job(m.group, ownDevices)))
	for i := range ownDevices {
		acctest.Eventually(t, "what "+m.memberName(i)+" says of its devices", func() bool {
			lines := logs(t, m.engine, m.memberName(i), engine.LogOptions{})
			return slices.Equal(lines, []string{m.devices[i].UUID, m.devices[i].UUID})
		})
	}
}

// occupied: members' processes on GPUs are attributed to them, other processes to nobody.
func (m *machine) occupied(t *testing.T) {
	use := func(i, pid int, member string) {
		m.devices[i].Processes = []fakenvml.Process{{PID: pid, MiB: usedMiB}}
		m.want[i].Processes = []domain.GPUProcess{{PID: pid, MemoryMiB: new(int64(usedMiB)), Member: member}}
	}
	use(0, m.GPUs.Process(t, m.engine, m.memberName(0)), m.memberName(0))
	use(takenDevice, m.GPUs.Stranger, "")
	m.shows(t)
	usage := m.usage(t)
	if u := usage.GPUs[m.devices[0].UUID]; !slices.Equal(u.Members, []string{m.memberName(0)}) {
		t.Errorf("a member's device is used as %+v", u)
	}
	if u := usage.GPUs[m.devices[takenDevice].UUID]; u.Members == nil || len(u.Members) > 0 {
		t.Errorf("a device that a stranger uses is used as %+v", u)
	}
	acctest.Eventually(t, "a sample of that", func() bool {
		members := m.usage(t).Members
		return is(members[m.memberName(0)].GPUMemoryMiB.Last, usedMiB) &&
			is(members[m.memberName(1)].GPUMemoryMiB.Last, 0)
	})
}

// wanted: of several programs that apply a group each at the same time, for more devices than there are, no two get the
// same device. Those that get none have created nothing, and their errors name the owners.
func (m *machine) wanted(t *testing.T) {
	names, reconcilers := make([]string, applies), make([]reconcile.Reconciler, applies)
	for i := range applies {
		names[i], reconcilers[i].Engine = fmt.Sprintf("%s-of-%d", m.group, i), m.GPUs.Another(t, m.engine)
	}
	outcomes := make([]error, applies)
	start := time.Now()
	var all sync.WaitGroup
	for i := range applies {
		all.Go(func() { outcomes[i] = reconcilers[i].Update(acctest.Bounded(t), m.job(names[i], 1)) })
	}
	all.Wait()
	took := time.Since(start)

	groups, err := engine.List[domain.GroupDocument](t.Context(), m.engine)
	must(t, err)
	owners := map[domain.DeviceSet]string{}
	for name, group := range groups {
		for member, at := range group.Assignments {
			if other, taken := owners[at.GPUs]; taken || len(at.GPUs.UUIDs()) != 1 ||
				at.GPUs == domain.DeviceSet(m.devices[takenDevice].UUID) {
				t.Errorf("%s of group %s has device %q, which %q has", member, name, at.GPUs, other)
			}
			owners[at.GPUs] = member
		}
	}
	runs := map[string]domain.State{}
	observed, err := m.engine.Observe(t.Context(), "")
	must(t, err)
	for _, o := range observed {
		runs[o.Name] = o.State
	}
	want, served := map[string]domain.State{
		m.memberName(0): domain.StateRunning, m.memberName(1): domain.StateRunning,
	}, 0
	for i, err := range outcomes {
		if err == nil {
			served++
			want[domain.MemberName(names[i], "worker", 0)] = domain.StateRunning
			continue
		}
		_, stored := groups[names[i]]
		for _, says := range []string{m.memberName(0) + " of group " +
			m.group, m.memberName(1) + " of group " + m.group, m.devices[takenDevice].UUID} {
			if stored || !strings.Contains(err.Error(), says) {
				t.Errorf("an apply that made %v failed without naming %s: %v", stored, says, err)
			}
		}
	}
	if diff := cmp.Diff(want, runs); diff != "" || served != freeDevices || len(owners) != ownDevices+freeDevices {
		t.Errorf("of %d applies %d were served, %d devices have owners, and members run (-want +got):\n%s", applies,
			served, len(owners), diff)
		logMembers(t, observed)
	}
	t.Logf("%d applies for %d devices took %s", applies, freeDevices, took.Round(time.Millisecond))
}

// failing: an error makes a device unusable, and another one is lost.
func (m *machine) failing(t *testing.T) {
	m.devices[3].XIDs, m.want[3].XID, m.want[3].Trouble = []int{48}, new(48), "double-bit ECC error (XID 48)"
	m.want[3].Condemned = &domain.Condemnation{XID: 48}
	m.devices[4].Lost = true
	lost := m.want[4]
	m.want[4] = domain.GPU{
		Device: lost.Device, Index: lost.Index, PCIBusID: lost.PCIBusID, Trouble: "fallen off the bus",
	}
	m.shows(t)
	var used engine.GPUUsage
	defer func() {
		if t.Failed() {
			t.Logf("the device that is lost is used as %+v", used)
		}
	}()
	acctest.Eventually(t, "a sample of that", func() bool {
		used = m.usage(t).GPUs[m.devices[4].UUID]
		return used.Utilisation.Last == nil && used.Reason == "fallen off the bus"
	})
	m.devices[4].Lost, m.want[4] = false, lost
	m.shows(t)
}

// hanging: if a device hangs, or the whole driver, everything else is still reported, and so are they once they respond
// again.
func (m *machine) hanging(t *testing.T) {
	hung := m.want[5]
	m.devices[5].Faults = fakenvml.Faults{"nvmlDeviceGetHandleByIndex": fakenvml.Hang}
	m.want[5] = domain.GPU{
		Device: hung.Device, Index: hung.Index, PCIBusID: hung.PCIBusID,
		Trouble: "the driver does not answer", Unknown: "NVML did not answer within 2s (nvmlDeviceGetHandleByIndex)",
	}
	m.shows(t)
	m.devices[5].Faults, m.want[5] = nil, hung
	m.shows(t)

	const why = "NVML did not answer within 2s (nvmlDeviceGetCount)"
	m.driver.Break(fakenvml.Faults{"nvmlDeviceGetCount": fakenvml.Hang})
	acctest.Eventually(t, "a driver that does not answer", func() bool {
		found := m.found(t)
		return len(found.GPUs) == 0 && strings.Contains(found.Unknown, why)
	})
	if u := m.usage(t).Hosts[m.Host]; !strings.Contains(u.GPUsReason, why) || u.CPUs.Last == nil ||
		u.MemoryMiB.P95 == nil {
		t.Errorf("a host whose driver does not answer uses %+v", u)
	}
	m.driver.Break(nil)
	m.awaitGPUs(t)
}
