package prometheus

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/common/model"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
)

// value is the answer for a quantity of one host, GPU or member.
type value struct {
	domain.Measure
	// ambiguous is set if several series had that name.
	ambiguous bool
}

// answers are the answers of a Prometheus.
type answers struct {
	hosts hosts
	// queries are the queries by quantity.
	queries map[string]string
	// values are the answers by quantity, and then by host name, member name or GPU UUID.
	values map[string]map[string]*value
	// machines maps the UUIDs of GPUs to their hosts.
	machines map[string]string
}

// The labels that name members and GPUs in series.
var (
	memberLabels = []model.LabelName{"member", "container_label_trainyard_member"}
	gpuLabels    = []model.LabelName{"uuid", "UUID"}
)

// namesOf returns the hosts, or the member or GPU, that a series is about.
func (a *answers) namesOf(quantity string, series model.Metric) []string {
	labels := gpuLabels
	switch kind, _, _ := strings.Cut(quantity, "_"); kind {
	case "host":
		return a.hosts.of(series)
	case "member":
		labels = memberLabels
	}
	for _, label := range labels {
		if name := string(series[label]); name != "" {
			return []string{name}
		}
	}
	return nil
}

// add adds the answer for a quantity, without NaN and infinite values.
func (a *answers) add(quantity string, vector model.Vector) {
	values := map[string]*value{}
	a.values[quantity] = values
	for _, sample := range vector {
		number := float64(sample.Value)
		if math.IsNaN(number) || math.IsInf(number, 0) {
			continue
		}
		for _, name := range a.namesOf(quantity, sample.Metric) {
			v := values[name]
			if v == nil {
				v = &value{}
				values[name] = v
			}
			v.add(string(sample.Metric[statisticLabel]), number)
			if quantity == gpuSampled {
				a.found(name, sample.Metric)
			}
		}
	}
}

// add adds one statistic.
func (v *value) add(statistic string, number float64) {
	place := &v.Last
	switch statistic {
	case statisticMean:
		place = &v.Mean
	case statisticMax:
		place = &v.Max
	case statisticP95:
		place = &v.P95
	}
	if *place != nil {
		v.ambiguous = true
		number = max(number, **place)
	}
	*place = &number
}

// found records which host of the cluster a GPU belongs to.
func (a *answers) found(uuid string, series model.Metric) {
	if hosts := a.hosts.of(series); len(hosts) > 0 {
		a.machines[uuid] = slices.Min(hosts)
	}
}

// gpus maps the UUIDs of the cluster's GPUs to their hosts: those that Prometheus reports, and those in pools.
func (a *answers) gpus(pools map[string]domain.GPUPoolDocument) map[string]string {
	all := maps.Clone(a.machines)
	for _, pool := range pools {
		for host, devices := range pool.Devices {
			for _, device := range devices {
				all[device.UUID] = host
			}
		}
	}
	return all
}

// taker collects the values of one host, GPU or member, and notes which ones are missing.
type taker struct {
	answers          *answers
	name             string
	unknown, several []string
	// unasked are the quantities without a query.
	unasked []string
}

// measure returns a quantity.
func (t *taker) measure(quantity string) domain.Measure {
	v, asked := t.answers.values[quantity][t.name], t.answers.queries[quantity] != ""
	switch {
	case !asked:
		t.unasked = append(t.unasked, quantity)
	case asked && (v == nil || v.Last == nil):
		t.unknown = append(t.unknown, quantity)
	case asked && v.ambiguous:
		t.several = append(t.several, quantity)
		return domain.Measure{}
	}
	if v == nil {
		return domain.Measure{}
	}
	return v.Measure
}

// number returns a quantity without statistics; 0 if unknown.
func (t *taker) number(quantity string) float64 {
	if last := t.measure(quantity).Last; last != nil {
		return *last
	}
	return 0
}

// sampled returns the time of the last sample; zero if unknown.
func (t *taker) sampled(quantity string) time.Time {
	const year10000 = 253402300800 // beyond RFC 3339
	v := t.answers.values[quantity][t.name]
	if v == nil || v.Last == nil || *v.Last <= 0 || *v.Last >= year10000 {
		return time.Time{}
	}
	return time.UnixMilli(int64(*v.Last * 1000))
}

// reason says what is unknown, with the queries for it; empty if nothing is.
func (t *taker) reason() string {
	var parts []string
	for _, quantity := range t.unknown {
		parts = append(parts,
			fmt.Sprintf("Prometheus returns nothing for %s with the query %s", quantity, t.answers.queries[quantity]))
	}
	for _, quantity := range t.several {
		parts = append(parts, fmt.Sprintf(
			"Prometheus returns several values for %s with the query %s: combine them with sum or max by a label",
			quantity, t.answers.queries[quantity],
		))
	}
	for _, quantity := range t.unasked {
		parts = append(parts, fmt.Sprintf("no default query for %s: set one in prometheus.queries", quantity))
	}
	return strings.Join(parts, "; ")
}

func (a *answers) host(name string) engine.HostUsage {
	t := &taker{answers: a, name: name}
	gpus := ""
	if !slices.Contains(slices.Collect(maps.Values(a.machines)), name) {
		gpus = "Prometheus reports no GPU on it with the query " + a.queries[gpuSampled]
	}
	return engine.HostUsage{
		CPUs: t.measure(hostCPUsUsed), MemoryMiB: t.measure(hostMemoryUsed), Load: t.measure(hostLoad),
		DiskMiB:     t.measure(hostDiskUsed),
		ReceivedBps: t.measure(hostReceived), SentBps: t.measure(hostSent),
		TotalCPUs: t.number(hostCPUs), TotalMemoryMiB: int64(t.number(hostMemory)),
		TotalDiskMiB: int64(t.number(hostDisk)),
		SampledAt:    t.sampled(hostSampled), Reason: t.reason(), GPUsReason: gpus,
	}
}

func (a *answers) gpu(uuid, host string) engine.GPUUsage {
	t := &taker{answers: a, name: uuid}
	return engine.GPUUsage{
		Host: host, Utilisation: t.measure(gpuUtilisation), MemoryMiB: t.measure(gpuMemoryUsed),
		TemperatureC: t.measure(gpuTemperature), PowerW: t.measure(gpuPower),
		TotalMemoryMiB: int64(t.number(gpuMemory)), SampledAt: t.sampled(gpuSampled), Reason: t.reason(),
	}
}

func (a *answers) member(o domain.Observed) engine.MemberUsage {
	if o.State != domain.StateRunning {
		return engine.MemberUsage{Reason: "the member is " + string(o.State)}
	}
	t, traffic := &taker{answers: a, name: o.Name}, &taker{answers: a, name: o.Name}
	return engine.MemberUsage{
		CPUs: t.measure(memberCPUsUsed), MemoryMiB: t.measure(memberMemoryUsed),
		GPUMemoryMiB: t.measure(memberGPUMemory),
		ReceivedBps:  traffic.measure(memberReceived), SentBps: traffic.measure(memberSent),
		SampledAt: t.sampled(memberSampled), Reason: t.reason(), TrafficReason: traffic.reason(),
	}
}
