package spec

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/mount"
	"github.com/docker/docker/api/types/swarm"
)

// Overlay merges a rendered service into a live one: Trainyard's settings are replaced, all others kept. Settings that
// already have the same meaning are not touched, so that no task restarts because of them.
func Overlay(live, want swarm.ServiceSpec) swarm.ServiceSpec {
	next := live
	next.Labels = overlayLabels(live.Labels, want.Labels)
	next.Mode = want.Mode
	next.EndpointSpec = overlayEndpoint(live.EndpointSpec, want.EndpointSpec)
	id := identityIn(identifying(want))
	next.UpdateConfig = overlayUpdate(live.UpdateConfig, want.UpdateConfig, id.Group != "" && id.Pooled)
	next.RollbackConfig = cmp.Or(live.RollbackConfig, want.RollbackConfig)
	next.TaskTemplate = overlayTask(live, want)
	keepImage(&next, live, want)
	return next
}

// overlayUpdate keeps others' update settings: all of them, unless the specification sets updates (ruled); then only
// the monitoring time, the tolerated failures, and the order of stop and start.
func overlayUpdate(live, want *swarm.UpdateConfig, ruled bool) *swarm.UpdateConfig {
	if live == nil || want == nil || !ruled {
		return cmp.Or(live, want)
	}
	next := *live
	next.Parallelism, next.Delay = want.Parallelism, want.Delay
	if cmp.Or(live.FailureAction, swarm.UpdateFailureActionPause) != want.FailureAction {
		next.FailureAction = want.FailureAction
	}
	return &next
}

// overlayLabels keeps labels of others.
func overlayLabels(live, want map[string]string) map[string]string {
	labels := maps.Clone(want)
	if labels == nil {
		labels = map[string]string{}
	}
	for key, value := range live {
		if !strings.HasPrefix(key, LabelPrefix) {
			if _, declared := want[key]; !declared {
				labels[key] = value
			}
		}
	}
	return labels
}

func overlayTask(live, want swarm.ServiceSpec) swarm.TaskSpec {
	task := live.TaskTemplate
	task.ContainerSpec = overlayContainer(live.TaskTemplate.ContainerSpec, want.TaskTemplate.ContainerSpec)
	task.Resources = overlayResources(live.TaskTemplate.Resources, want.TaskTemplate.Resources)
	task.RestartPolicy = overlayRestart(live.TaskTemplate.RestartPolicy, want.TaskTemplate.RestartPolicy)
	formerly, _ := RecordOf(live)
	task.Placement = overlayPlacement(live.TaskTemplate.Placement, want.TaskTemplate.Placement,
		formerly.Placement.SpreadBy)
	task.Networks = overlayNetworks(networksIn(live), want.TaskTemplate.Networks, formerly.Network)
	if encode(logging(task.LogDriver)) != encode(logging(want.TaskTemplate.LogDriver)) {
		task.LogDriver = want.TaskTemplate.LogDriver
	}
	return task
}

func overlayContainer(live, want *swarm.ContainerSpec) *swarm.ContainerSpec {
	if live == nil || want == nil {
		return want
	}
	next := *live
	next.Image = want.Image
	next.Labels = overlayLabels(live.Labels, want.Labels)
	next.Command = keepAll(live.Command, want.Command)
	next.Args = keepAll(live.Args, want.Args)
	next.Hostname, next.Dir, next.User, next.StopSignal = want.Hostname, want.Dir, want.User, want.StopSignal
	next.Env = keep(live.Env, want.Env, same)
	next.Mounts = keep(live.Mounts, want.Mounts, sameMount)
	next.Configs = append(runtimeConfigs(live.Configs), keep(fileConfigs(live.Configs), want.Configs, sameConfig)...)
	next.Secrets = keep(live.Secrets, want.Secrets, sameSecret)
	next.Ulimits = keep(live.Ulimits, want.Ulimits, func(a, b *container.Ulimit) bool { return *a == *b })
	if want.CapabilityDrop != nil {
		next.CapabilityAdd, next.CapabilityDrop = want.CapabilityAdd, want.CapabilityDrop
	}
	next.ReadOnly = live.ReadOnly || want.ReadOnly
	next.Healthcheck = overlayHealthcheck(live.Healthcheck, want.Healthcheck)
	if grace(live.StopGracePeriod) != grace(want.StopGracePeriod) {
		next.StopGracePeriod = want.StopGracePeriod
	}
	if isTrue(live.Init) != isTrue(want.Init) {
		next.Init = want.Init
	}
	return &next
}

func isTrue(value *bool) bool { return value != nil && *value }

// keepImage keeps the live image reference if the user's image is unchanged and the member needs no restart: the user's
// tag may refer to another image by now.
func keepImage(next *swarm.ServiceSpec, live, want swarm.ServiceSpec) {
	before, found := RecordOf(live)
	after, rendered := RecordOf(want)
	if !found || !rendered || identityIn(identifying(live)) != identityIn(identifying(want)) ||
		read(live, sealing{}).Image != after.Image {
		return
	}
	next.TaskTemplate.ContainerSpec.Image = live.TaskTemplate.ContainerSpec.Image
	after.Reference, after.Content = before.Reference, before.Content
	after.put(next)
}

// KeepEnvironment returns the rendered service with the live environment, if the member needs no restart and nobody
// else changed it: its information about other members may be outdated, which is no reason for a restart.
func KeepEnvironment(live, want swarm.ServiceSpec) swarm.ServiceSpec {
	before, found := RecordOf(live)
	after, rendered := RecordOf(want)
	if !found || !rendered || live.Labels[LabelStaged] != "" ||
		identityIn(identifying(live)) != identityIn(identifying(want)) || before.Seal != sealWith(live, before, true) {
		return want
	}
	container := *want.TaskTemplate.ContainerSpec
	container.Env = live.TaskTemplate.ContainerSpec.Env
	want.TaskTemplate.ContainerSpec = &container
	want.Labels = maps.Clone(want.Labels)
	after.Seal = sealWith(want, after, true)
	after.put(&want)
	return want
}

// keep returns the wanted elements, each in its live form if that has the same meaning, and in live order if that is so
// for all of them.
func keep[T any](live, want []T, same func(a, b T) bool) []T {
	var kept []T
	taken := make([]bool, len(live))
	for _, wanted := range want {
		element := wanted
		for i := range live {
			if !taken[i] && same(live[i], wanted) {
				element, taken[i] = live[i], true
				break
			}
		}
		kept = append(kept, element)
	}
	if len(live) == len(want) && !slices.Contains(taken, false) {
		return live
	}
	return kept
}

// keepAll is keep for lists in which the order matters.
func keepAll(live, want []string) []string {
	if slices.Equal(live, want) {
		return live
	}
	return want
}

func same(a, b string) bool { return a == b }

// sameMount reports whether a live mount equals the wanted one.
func sameMount(live, want mount.Mount) bool {
	size := func(m mount.Mount) int64 {
		if m.TmpfsOptions == nil {
			return 0
		}
		return m.TmpfsOptions.SizeBytes
	}
	return live.Type == want.Type && live.Source == want.Source && live.Target == want.Target &&
		live.ReadOnly == want.ReadOnly && size(live) == size(want) && isShm(live) == isShm(want) &&
		(isAlone(live) || !isAlone(want)) && sameDriver(driverOf(live), driverOf(want))
}

func sameDriver(live, want *mount.Driver) bool {
	if live == nil || want == nil {
		return live == want
	}
	return live.Name == want.Name && maps.Equal(live.Options, want.Options)
}

// isAlone reports whether a bind mount excludes submounts.
func isAlone(m mount.Mount) bool { return m.BindOptions != nil && m.BindOptions.NonRecursive }

func sameConfig(a, b *swarm.ConfigReference) bool {
	return a.ConfigName == b.ConfigName && a.File.Name == b.File.Name && a.File.Mode == b.File.Mode
}

func fileConfigs(refs []*swarm.ConfigReference) []*swarm.ConfigReference {
	return slices.DeleteFunc(slices.Clone(refs), func(ref *swarm.ConfigReference) bool { return ref.File == nil })
}

// runtimeConfigs are the configs that are not files: others use them for the credentials of Windows containers.
func runtimeConfigs(refs []*swarm.ConfigReference) []*swarm.ConfigReference {
	return slices.DeleteFunc(slices.Clone(refs), func(ref *swarm.ConfigReference) bool { return ref.File != nil })
}

func sameSecret(a, b *swarm.SecretReference) bool {
	return a.File != nil && a.SecretName == b.SecretName && a.File.Name == b.File.Name && a.File.Mode == b.File.Mode
}

// overlayHealthcheck keeps the live check interval of starting containers.
func overlayHealthcheck(live, want *container.HealthConfig) *container.HealthConfig {
	if live == nil || want == nil {
		return want
	}
	next := *want
	next.StartInterval = live.StartInterval
	next.Test = keepAll(live.Test, want.Test)
	return &next
}

// overlayResources keeps limits on the number of processes, and generic resources.
func overlayResources(live, want *swarm.ResourceRequirements) *swarm.ResourceRequirements {
	if live == nil {
		return want
	}
	if want == nil {
		want = &swarm.ResourceRequirements{}
	}
	next := *live
	if live.Limits != nil || want.Limits != nil {
		wanted := orZero(want.Limits)
		limits := orZero(live.Limits)
		limits.NanoCPUs, limits.MemoryBytes = wanted.NanoCPUs, wanted.MemoryBytes
		next.Limits = &limits
	}
	if live.Reservations != nil || want.Reservations != nil {
		wanted := orZero(want.Reservations)
		reservations := orZero(live.Reservations)
		reservations.NanoCPUs, reservations.MemoryBytes = wanted.NanoCPUs, wanted.MemoryBytes
		next.Reservations = &reservations
	}
	return &next
}

func orZero[T any](value *T) T {
	if value == nil {
		return *new(T)
	}
	return *value
}

// overlayRestart keeps the window in which restarts are counted and, if nothing restarts, the settings that would
// apply.
func overlayRestart(live, want *swarm.RestartPolicy) *swarm.RestartPolicy {
	if live == nil || want == nil {
		return want
	}
	next := *live
	next.Condition = want.Condition
	if want.Delay != nil {
		next.Delay = want.Delay
	}
	if want.MaxAttempts != nil {
		next.MaxAttempts = want.MaxAttempts
	}
	return &next
}

// overlayPlacement keeps platforms, and preferences that are not the role's.
func overlayPlacement(live, want *swarm.Placement, formerly string) *swarm.Placement {
	if live == nil || want == nil {
		return cmp.Or(want, live)
	}
	next := *live
	next.Constraints = keep(live.Constraints, want.Constraints,
		func(a, b string) bool { return compact(a) == compact(b) })
	next.Preferences = overlayPreferences(live, want, formerly)
	next.MaxReplicas = want.MaxReplicas
	return &next
}

// overlayNetworks keeps the networks of others, and adds missing ones. The cluster's former network is removed, as it
// was recreated.
func overlayNetworks(live, want []swarm.NetworkAttachmentConfig, formerly string) []swarm.NetworkAttachmentConfig {
	to := func(target string) func(n swarm.NetworkAttachmentConfig) bool {
		return func(n swarm.NetworkAttachmentConfig) bool { return n.Target == target }
	}
	next := slices.Clone(live)
	if !slices.ContainsFunc(want, to(formerly)) {
		next = slices.DeleteFunc(next, to(formerly))
	}
	for _, wanted := range want {
		if !slices.ContainsFunc(live, to(wanted.Target)) {
			next = append(next, wanted)
		}
	}
	return next
}

func overlayEndpoint(live, want *swarm.EndpointSpec) *swarm.EndpointSpec {
	if live == nil || want == nil {
		return cmp.Or(want, live)
	}
	return &swarm.EndpointSpec{
		Mode:  want.Mode,
		Ports: keep(live.Ports, want.Ports, func(a, b swarm.PortConfig) bool { return a == b }),
	}
}

// Equal reports whether two services are the same to the Swarm.
func Equal(a, b swarm.ServiceSpec) bool { return encode(a) == encode(b) }
