package spec

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"net"
	"os"
	"slices"
	"time"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/mount"
	"github.com/docker/docker/api/types/swarm"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
)

const (
	// shmMode are the permissions of the shared memory. Swarm has no setting for its size, so it is a tmpfs, which
	// differs from a user's by its mode.
	shmMode = os.FileMode(0o1777)
)

// The variables that tell members who and where they are. Members of an interchangeable role share their specification,
// so they have neither index nor name; Swarm's templates for node and task give their location.
const (
	variableIndex   = "TRAINYARD_INDEX"
	variableMember  = "TRAINYARD_MEMBER"
	variableHost    = "TRAINYARD_HOST"
	variableAddress = "TRAINYARD_ADDRESS"

	taskTemplate = "{{.Task.Name}}"
)

// maxLabel is the maximum length of a label of a DNS name (RFC 1035, section 2.3.4).
const maxLabel = 63

// HostnameTemplate is the Swarm template for the name of the host on which a task runs.
const HostnameTemplate = "{{.Node.Hostname}}"

// Render returns the service of a member or, for a pooled one, of n members of its role. If the target lacks a host, a
// config object or a secret that the specification names, that is an error.
func Render(spec domain.MemberSpec, in Target, n int) (swarm.ServiceSpec, error) {
	constraints, err := constraintsOf(spec, in)
	if err != nil {
		return swarm.ServiceSpec{}, err
	}
	configs, err := configReferences(spec, in)
	if err != nil {
		return swarm.ServiceSpec{}, err
	}
	secrets, err := secretReferences(spec, in)
	if err != nil {
		return swarm.ServiceSpec{}, err
	}
	id := identityFor(spec)
	grace := time.Duration(spec.GracePeriod)
	r := recordFor(spec, in, constraints)
	service := swarm.ServiceSpec{
		Annotations: swarm.Annotations{Name: ServiceName(spec), Labels: id.Labels()},
		TaskTemplate: swarm.TaskSpec{
			ContainerSpec: &swarm.ContainerSpec{
				Image:           r.reference(),
				Labels:          id.Labels(),
				Command:         spec.Command,
				Args:            spec.Args,
				Hostname:        hostname(id),
				Env:             environment(spec),
				Dir:             spec.WorkingDir,
				User:            spec.Container.User,
				Mounts:          mounts(spec),
				StopSignal:      spec.Container.StopSignal,
				StopGracePeriod: &grace,
				Healthcheck:     healthcheck(spec.Container.HealthCheck),
				Configs:         configs,
				Secrets:         secrets,
				Ulimits:         ulimits(spec.Container.Ulimits),
			},
			Resources:     resources(spec),
			RestartPolicy: restartPolicy(spec),
			Placement: &swarm.Placement{
				Constraints: constraints, Preferences: preferencesOf(spec), MaxReplicas: maxReplicas(spec),
			},
			Networks: []swarm.NetworkAttachmentConfig{{Target: in.Network}},
		},
		// A member is replaced only after it has ended. Whether a failed replacement is retried is up to the restart
		// rule.
		UpdateConfig: updateConfig(spec.Update),
		EndpointSpec: &swarm.EndpointSpec{Mode: swarm.ResolutionModeDNSRR, Ports: ports(spec.Container.Ports)},
	}
	if spec.Container.Init {
		service.TaskTemplate.ContainerSpec.Init = &spec.Container.Init
	}
	if logging := spec.Container.Logging; logging != nil {
		service.TaskTemplate.LogDriver = &swarm.Driver{Name: logging.Driver, Options: logging.Options}
	}
	SetReplicas(&service, n)
	r.put(&service)
	r.Seal = Seal(service)
	r.put(&service)
	return service, nil
}

// recordFor returns the record of a specification, without the seal.
func recordFor(spec domain.MemberSpec, in Target, constraints []string) Record {
	spec = spec.Normal() // equivalent specifications have the same record
	r := Record{
		Host: spec.Host, Address: spec.Address, Restart: spec.Restart, Image: spec.Image,
		PullPolicy: spec.Container.PullPolicy,
		Network:    in.Network, Constraints: constraints, Configs: map[string]string{},
		Secrets: map[string]secretVersion{},
	}
	if spec.Shared {
		r.Address, r.Placement, r.Update = sharedAddress(spec), spec.Placement, spec.Update
	}
	image := in.Images[spec.Image]
	if reference := image.On(in.Nodes[spec.Host]); reference != spec.Image {
		r.Reference, r.Content = reference, image.Content
	}
	for name, file := range spec.Container.Configs {
		r.Configs[file.Target] = name
	}
	for name, file := range spec.Container.Secrets {
		r.Secrets[file.Target] = secretVersion{Name: name, Version: file.Version}
	}
	return r
}

// hostname is the hostname of a member's containers; pooled ones keep Docker's default.
func hostname(id Identity) string {
	if id.Pooled {
		return ""
	}
	return id.Member(id.Index)
}

// environment returns the variables of a member's containers, sorted.
func environment(spec domain.MemberSpec) []string {
	values := make(map[string]string, len(spec.Env))
	for name, value := range spec.Env {
		values[name] = literal(value)
	}
	if spec.Shared {
		delete(values, variableIndex)
		delete(values, variableMember)
		maps.Copy(values, whereabouts(spec.Cluster, spec.Address))
	}
	env := make([]string, 0, len(values))
	for _, name := range slices.Sorted(maps.Keys(values)) {
		env = append(env, name+"="+values[name])
	}
	return env
}

// whereabouts are the variables of pooled members that the Swarm fills in. A task's name ends with its ID, and if that
// begins with a digit, it is no host name for Java's URIs (RFC 2396, section 3.2.2), which Spark needs. Docker's DNS
// also resolves it with the network's name, unless that is too long for DNS.
func whereabouts(cluster, address string) map[string]string {
	name := taskTemplate
	if network := NetworkName(cluster); len(network) <= maxLabel {
		name += "." + network
	}
	return map[string]string{variableHost: HostnameTemplate, variableAddress: name + portOf(address)}
}

// sharedAddress is the address of all members that share a service: the service's name, which resolves to each of them
// in turn.
func sharedAddress(spec domain.MemberSpec) string { return ServiceName(spec) + portOf(spec.Address) }

// portOf returns the port of an address with its colon, or "".
func portOf(address string) string {
	if _, port, err := net.SplitHostPort(address); err == nil {
		return ":" + port
	}
	return ""
}

var mountTypes = map[domain.MountType]mount.Type{
	domain.MountBind: mount.TypeBind, domain.MountVolume: mount.TypeVolume, domain.MountTmpfs: mount.TypeTmpfs,
}

// literals applies literal to the values of a map.
func literals(texts map[string]string) map[string]string {
	if texts == nil {
		return nil
	}
	rendered := make(map[string]string, len(texts))
	for name, text := range texts {
		rendered[name] = literal(text)
	}
	return rendered
}

func mounts(spec domain.MemberSpec) []mount.Mount {
	var list []mount.Mount
	for _, m := range spec.Mounts {
		rendered := mount.Mount{
			Type: mountTypes[cmp.Or(m.Type, domain.MountBind)], Source: literal(m.Source), Target: literal(m.Target),
			ReadOnly: m.ReadOnly,
		}
		if m.SizeMiB > 0 {
			rendered.TmpfsOptions = &mount.TmpfsOptions{SizeBytes: m.SizeMiB * MiB}
		}
		if m.Driver != nil {
			rendered.VolumeOptions = &mount.VolumeOptions{
				DriverConfig: &mount.Driver{Name: m.Driver.Name, Options: literals(m.Driver.Options)},
			}
		}
		list = append(list, rendered)
	}
	if size := spec.Container.ShmSizeMiB; size > 0 {
		list = append(list, mount.Mount{
			Type: mount.TypeTmpfs, Target: domain.ShmDir,
			TmpfsOptions: &mount.TmpfsOptions{SizeBytes: size * MiB, Mode: shmMode},
		})
	}
	if spec.Kept != "" && !spec.Shared { // a kept folder belongs to one member
		list = append(list, keptMount(spec))
	}
	return list
}

func configReferences(spec domain.MemberSpec, in Target) ([]*swarm.ConfigReference, error) {
	files, _ := configFiles(spec)
	var references []*swarm.ConfigReference
	for _, file := range files {
		id, found := in.Configs[file.object]
		if !found {
			return nil, fmt.Errorf("member %q: config object %q, the source of %s, is not in the Swarm", spec.Name,
				file.object, file.target)
		}
		references = append(references, &swarm.ConfigReference{
			ConfigID: id, ConfigName: file.object,
			File: &swarm.ConfigReferenceFileTarget{Name: file.target, UID: "0", GID: "0", Mode: os.FileMode(file.mode)},
		})
	}
	return references, nil
}

func secretReferences(spec domain.MemberSpec, in Target) ([]*swarm.SecretReference, error) {
	var references []*swarm.SecretReference
	for _, file := range secretFiles(spec) {
		id, found := in.Secrets[file.object]
		if !found {
			return nil, fmt.Errorf("member %q: secret %q, the source of %s, is not in the Swarm", spec.Name,
				file.object, file.target)
		}
		references = append(references, &swarm.SecretReference{
			SecretID: id, SecretName: file.object,
			File: &swarm.SecretReferenceFileTarget{Name: file.target, UID: "0", GID: "0", Mode: os.FileMode(file.mode)},
		})
	}
	return references, nil
}

func healthcheck(check *domain.HealthCheck) *container.HealthConfig {
	if check == nil {
		return nil
	}
	duration := func(d *domain.Duration) time.Duration {
		if d == nil {
			return 0
		}
		return time.Duration(*d)
	}
	return &container.HealthConfig{
		Test:        append([]string{"CMD"}, check.Command...),
		Interval:    duration(check.Interval),
		Timeout:     duration(check.Timeout),
		StartPeriod: duration(check.StartPeriod),
		Retries:     check.Retries,
	}
}

func ulimits(limits map[string]domain.Ulimit) []*container.Ulimit {
	var list []*container.Ulimit
	for _, name := range slices.Sorted(maps.Keys(limits)) {
		list = append(list, &container.Ulimit{Name: name, Soft: limits[name].Soft, Hard: limits[name].Hard})
	}
	return list
}

func ports(published map[string]domain.PublishedPort) []swarm.PortConfig {
	var list []swarm.PortConfig
	for _, name := range slices.Sorted(maps.Keys(published)) {
		port := published[name]
		list = append(list, swarm.PortConfig{
			Name: name, Protocol: swarm.PortConfigProtocol(cmp.Or(port.Protocol, "tcp")),
			PublishMode: swarm.PortConfigPublishModeHost,
			TargetPort:  uint32(port.Target), PublishedPort: uint32(port.Published), //nolint:gosec // ports are checked to be below 65,536
		})
	}
	return list
}

// resources returns what a member reserves and may use, or nil if it sets neither.
func resources(spec domain.MemberSpec) *swarm.ResourceRequirements {
	var requirements swarm.ResourceRequirements
	if r := spec.Resources.Requests(); r != (domain.Resources{}) {
		requirements.Reservations = &swarm.Resources{NanoCPUs: nano(r.CPUs), MemoryBytes: r.MemoryMiB * MiB}
	}
	if l := spec.Resources.Limits; l != (domain.Resources{}) {
		requirements.Limits = &swarm.Limit{NanoCPUs: nano(l.CPUs), MemoryBytes: l.MemoryMiB * MiB}
	}
	if requirements == (swarm.ResourceRequirements{}) {
		return nil
	}
	return &requirements
}

func nano(cpus float64) int64 { return int64(math.Round(cpus * NanoCPUs)) }

// swarmConditions are Swarm's names of the conditions under which it restarts pooled members.
var swarmConditions = map[domain.Condition]swarm.RestartPolicyCondition{
	domain.RestartAlways:    swarm.RestartPolicyConditionAny,
	domain.RestartOnFailure: swarm.RestartPolicyConditionOnFailure,
	domain.RestartNever:     swarm.RestartPolicyConditionNone,
	domain.RestartByGroup:   swarm.RestartPolicyConditionNone,
}

// restartPolicy returns the Swarm's restart policy: none for indexed members, which the controller restarts, and for
// pooled ones their rule, except for final exit codes and the back-off, which Swarm does not have.
func restartPolicy(spec domain.MemberSpec) *swarm.RestartPolicy {
	if !spec.Shared {
		return &swarm.RestartPolicy{Condition: swarm.RestartPolicyConditionNone}
	}
	delay, attempts := time.Duration(spec.Restart.Delay), uint64(max(spec.Restart.MaxAttempts, 0)) //nolint:gosec // it is not negative
	return &swarm.RestartPolicy{
		Condition: swarmConditions[spec.Restart.Condition], Delay: &delay, MaxAttempts: &attempts,
	}
}

// failureActions are Swarm's names of what happens if an update fails. The reconciler does rollbacks, as it also
// restores the group's document and all its roles.
var failureActions = map[domain.OnFailure]string{
	domain.UpdatePause: swarm.UpdateFailureActionPause, domain.UpdateContinue: swarm.UpdateFailureActionContinue,
	domain.UpdateRollback: swarm.UpdateFailureActionPause,
}

// failureAction returns what the Swarm does if a task fails during an update. Swarm takes a task that completes soon
// for a failed one, so an update of all at once has to continue, or some would be left out.
func failureAction(update domain.Update) string {
	if update.Parallelism <= 0 {
		return swarm.UpdateFailureActionContinue
	}
	return failureActions[cmp.Or(update.OnFailure, domain.UpdatePause)]
}

// updateConfig returns how the Swarm updates the tasks of a service.
func updateConfig(update domain.Update) *swarm.UpdateConfig {
	return &swarm.UpdateConfig{
		Parallelism: uint64(max(update.Parallelism, 0)), Delay: update.Wait(), //nolint:gosec // it is not negative
		Order: swarm.UpdateOrderStopFirst, FailureAction: failureAction(update),
	}
}

func maxReplicas(spec domain.MemberSpec) uint64 {
	if spec.Shared && spec.Placement.Strategy == domain.OnePerHost {
		return 1
	}
	return 0
}
