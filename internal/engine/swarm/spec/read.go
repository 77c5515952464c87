package spec

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/docker/docker/api/types/swarm"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
)

// Lookup resolves what services refer to: config objects by their IDs, and hosts by their nodes' IDs.
type Lookup struct {
	Configs map[string]swarm.Config
	Hosts   map[string]string
}

func (k Lookup) content(ref *swarm.ConfigReference) string {
	return string(k.Configs[ref.ConfigID].Spec.Data)
}
func (k Lookup) host(node string) string                     { return k.Hosts[node] }
func (k Lookup) text(template string) (text string, ok bool) { return unquoted(template) }

// resolver resolves references of a service: to the content of a config object, to a host, or "", and to the text that
// a template expands to, if the template is Trainyard's.
type resolver interface {
	content(ref *swarm.ConfigReference) string
	host(node string) string
	text(template string) (text string, ok bool)
}

// sealing resolves each reference to itself: a config object never changes, nor does a node's ID or what a template
// expands to.
type sealing struct{}

func (sealing) content(ref *swarm.ConfigReference) string   { return ref.ConfigName }
func (sealing) host(node string) string                     { return node }
func (sealing) text(template string) (text string, ok bool) { return template, true }

// Drift returns the specification that a service stands for if somebody else changed the service since it was rendered,
// otherwise nil. The number of replicas is not part of it.
func Drift(service swarm.Service, k Lookup) *domain.MemberSpec {
	if !sealedOf(service).Broken {
		return nil
	}
	live := read(service.Spec, k)
	return &live
}

// Individual returns the specification of the member with this index, and its address, from the one that the members of
// a pooled service share.
func Individual(shared domain.MemberSpec, index int) domain.MemberSpec {
	spec := shared
	spec.Index, spec.Name = index, domain.MemberName(shared.Group, shared.Role, index)
	spec.Env = maps.Clone(shared.Env)
	if spec.Env == nil {
		spec.Env = map[string]string{}
	}
	maps.Copy(spec.Env, map[string]string{
		variableIndex: fmt.Sprint(index), variableMember: spec.Name, variableHost: "", variableAddress: spec.Address,
	})
	return spec
}

// read returns the specification that a service stands for, in normal form. For a pooled service it is the one that its
// members share, see [Individual].
func read(spec swarm.ServiceSpec, look resolver) domain.MemberSpec {
	r, recorded := RecordOf(spec)
	return readWith(spec, r, recorded, look)
}

// readWith is read for a service whose record was already read.
func readWith(spec swarm.ServiceSpec, carried Record, recorded bool, look resolver) domain.MemberSpec {
	r := reader{
		spec: spec, task: spec.TaskTemplate, look: look, id: identityIn(identifying(spec)), record: carried,
		recorded: recorded,
	}
	if spec.TaskTemplate.ContainerSpec != nil {
		r.container = *spec.TaskTemplate.ContainerSpec
	}
	if !r.recorded {
		r.deviate("service label %s is missing", LabelSpec)
	}
	r.labels()
	s := &r.found
	s.Cluster, s.Group, s.Role, s.Index, s.Hash, s.Run = r.id.Cluster, r.id.Group, r.id.Role, r.id.Index, r.id.Hash,
		r.id.Run
	s.Name, s.Interchangeable = r.id.Member(r.id.Index), r.id.Pooled
	s.Address = r.record.Address
	s.Image = r.image()
	s.Command, s.Args, s.WorkingDir = slices.Clone(r.container.Command), slices.Clone(r.container.Args), r.container.Dir
	s.Env = r.env()
	s.GracePeriod = grace(r.container.StopGracePeriod)
	s.Container.PullPolicy = r.record.PullPolicy
	s.Container.User = r.container.User
	s.Container.Init = r.container.Init != nil && *r.container.Init
	s.Container.StopSignal = r.container.StopSignal
	s.Container.HealthCheck = r.healthcheck()
	s.Container.Ulimits = r.ulimits()
	s.Container.Ports = r.ports()
	s.Container.Logging = logging(r.task.LogDriver)
	r.mounts()
	r.configs()
	s.Container.Secrets = r.secrets()
	r.resources()
	r.restart()
	r.update()
	r.placement()
	r.rest()
	slices.Sort(s.Deviations)
	return s.Normal()
}

// reader reads a service back.
type reader struct {
	spec      swarm.ServiceSpec
	task      swarm.TaskSpec
	container swarm.ContainerSpec
	look      resolver
	id        Identity
	record    Record
	recorded  bool
	found     domain.MemberSpec
}

func (r *reader) deviate(format string, args ...any) {
	r.found.Deviations = append(r.found.Deviations, fmt.Sprintf(format, args...))
}

// expect records a deviation if something without a field of its own is not as rendered.
func expect[T comparable](r *reader, what string, got, want T) {
	if got != want {
		r.deviate("%s is %s instead of %s", what, shown(got), shown(want))
	}
}

func shown(value any) string {
	if text, isText := value.(string); isText {
		return fmt.Sprintf("%q", text)
	}
	return fmt.Sprint(value)
}

// labels records deviations of the identity labels. If service and containers disagree, the containers are right.
func (r *reader) labels() {
	want := r.id.Labels()
	for _, key := range identityLabels {
		value, rendered := want[key]
		if !rendered {
			continue
		}
		for _, carrier := range []struct {
			what   string
			labels map[string]string
		}{{"service", r.spec.Labels}, {"container", r.container.Labels}} {
			switch got, found := carrier.labels[key]; {
			case !found:
				r.deviate("%s label %s is missing", carrier.what, key)
			case got != value:
				r.deviate("%s label %s is %q instead of %q", carrier.what, key, got, value)
			}
		}
	}
}

// image returns the user's image if the service still runs what was rendered for it. The docker command adds the digest
// to a tag, which is not a change.
func (r *reader) image() string {
	live, rendered := r.container.Image, r.record.reference()
	if r.recorded && (live == rendered || !strings.Contains(rendered, "@") && strings.HasPrefix(live, rendered+"@")) {
		return r.record.Image
	}
	return live
}

func (r *reader) env() map[string]string {
	env := map[string]string{}
	var filled map[string]string
	if r.id.Pooled {
		filled = whereabouts(r.id.Cluster, r.record.Address)
	}
	seen := map[string]bool{}
	for _, variable := range r.container.Env {
		name, template, given := strings.Cut(variable, "=")
		value, isLiteral := r.look.text(template)
		if seen[name] {
			r.deviate("variable %s is declared twice", name)
		}
		seen[name] = true
		switch expected, isFilled := filled[name]; {
		case !given:
			r.deviate("variable %s is unset", name)
		case isFilled && template == expected:
		default:
			if !isLiteral {
				r.deviate("variable %s is a Swarm template", name)
			}
			env[name] = value
		}
	}
	for _, name := range slices.Sorted(maps.Keys(filled)) {
		if !seen[name] {
			r.deviate("variable %s is missing", name)
		}
	}
	return env
}

// grace returns the time between the stop signal and the kill, Docker's default if none is set.
func grace(period *time.Duration) domain.Duration {
	if period == nil {
		return domain.DefaultGracePeriod
	}
	return domain.Duration(*period)
}

// resources reads what the member reserves and may use.
func (r *reader) resources() {
	if r.task.Resources == nil {
		return
	}
	if reserved := r.task.Resources.Reservations; reserved != nil {
		r.found.Resources.CPUs, r.found.Resources.MemoryMiB = float64(reserved.NanoCPUs)/NanoCPUs,
			r.mib("reserved memory", reserved.MemoryBytes)
	}
	if limits := r.task.Resources.Limits; limits != nil {
		r.found.Resources.Limits = domain.Resources{
			CPUs: float64(limits.NanoCPUs) / NanoCPUs, MemoryMiB: r.mib("memory limit", limits.MemoryBytes),
		}
	}
}

// mib converts a size to mebibytes, and records a deviation if it is not a whole number of them.
func (r *reader) mib(what string, bytes int64) int64 {
	if bytes%MiB != 0 {
		r.deviate("%s is %d bytes", what, bytes)
	}
	return bytes / MiB
}

// restart reads the restart rule. Swarm knows nothing of an indexed member's, and part of a pooled one's.
func (r *reader) restart() {
	rule := r.record.Restart
	rule.Final = slices.Clone(rule.Final)
	policy := swarm.RestartPolicy{Condition: swarm.RestartPolicyConditionAny}
	if r.task.RestartPolicy != nil {
		policy = *r.task.RestartPolicy
	}
	if !r.id.Pooled {
		expect(r, "Swarm's own restart condition", string(policy.Condition), string(swarm.RestartPolicyConditionNone))
		r.found.Restart = rule
		return
	}
	if r.spec.Labels[LabelStop] != "" {
		r.found.Restart = rule // see [Stopped]
		return
	}
	if policy.Condition != swarmConditions[rule.Condition] {
		for _, condition := range domain.Conditions {
			if swarmConditions[condition] == policy.Condition {
				rule.Condition = condition
			}
		}
	}
	if policy.Delay != nil {
		rule.Delay = domain.Duration(*policy.Delay)
	}
	rule.MaxAttempts = 0
	if policy.MaxAttempts != nil {
		rule.MaxAttempts = int(*policy.MaxAttempts) //nolint:gosec // nobody tries that often
	}
	r.found.Restart = rule
}

// update reads how members that share a service are updated. For an indexed member, that is not up to the Swarm.
func (r *reader) update() {
	if !r.id.Pooled {
		return
	}
	if r.spec.Labels[LabelStop] != "" {
		r.found.Update = r.record.Update // see [Stopped]
		return
	}
	config := swarm.UpdateConfig{Parallelism: 1} // Swarm's default
	if r.spec.UpdateConfig != nil {
		config = *r.spec.UpdateConfig
	}
	delay := domain.Duration(config.Delay)
	update := domain.Update{Parallelism: int(config.Parallelism), Delay: &delay, OnFailure: cmp.Or(r.record.Update.OnFailure, domain.UpdatePause)} //nolint:gosec // no service has that many tasks
	if action := cmp.Or(config.FailureAction,
		swarm.UpdateFailureActionPause); action != failureAction(r.record.Update) {
		update.OnFailure = domain.OnFailure(action)
	}
	r.found.Update = update
}

// placement reads where the member may run.
func (r *reader) placement() {
	r.found.Host, r.found.Placement = r.record.Host, r.record.Placement
	r.found.Scheduling, r.found.Shared = domain.SchedulingPinned, r.id.Pooled
	if r.id.Pooled {
		r.found.Scheduling = domain.SchedulingEngine
	}
	r.found.Placement.Labels = maps.Clone(r.record.Placement.Labels)
	added, removed := r.constraints()
	if r.id.Pooled {
		added, removed = r.labelConstraints(added, removed)
	} else if host, isOther := r.otherHost(added, removed); isOther {
		r.found.Host, added, removed = host, nil, nil
	}
	for _, constraint := range added {
		r.deviate("constraint %q was added", constraint)
	}
	for _, constraint := range removed {
		r.deviate("constraint %q was removed", constraint)
	}
	var most uint64
	if r.task.Placement != nil {
		most = r.task.Placement.MaxReplicas
	}
	if !r.id.Pooled {
		expect(r, "the maximum of replicas per node", most, 0)
		return
	}
	if r.record.Placement.SpreadBy != "" { // otherwise all preferences are others'
		r.found.Placement.SpreadBy, _ = spreadsBy(r.task.Placement)
	}
	switch isOnePerHost := r.found.Placement.Strategy == domain.OnePerHost; {
	case most == 1:
		r.found.Placement.Strategy = domain.OnePerHost
	case isOnePerHost:
		r.found.Placement.Strategy = domain.Spread
	}
	if most > 1 {
		r.deviate("at most %d replicas per node", most)
	}
}

// constraints compares the constraints with those that were rendered. A stopped member is expected to have [nowhere] in
// addition.
func (r *reader) constraints() (added, removed []string) {
	if !r.recorded {
		return nil, nil
	}
	want := slices.Clone(r.record.Constraints)
	if r.spec.Labels[LabelStop] != "" {
		want = append(want, nowhere)
	}
	live := constraintsIn(r.spec)
	for _, constraint := range live {
		if !slices.Contains(want, constraint) {
			added = append(added, constraint)
		}
	}
	for _, constraint := range want {
		if !slices.Contains(live, constraint) {
			removed = append(removed, constraint)
		}
	}
	return added, removed
}

// otherHost returns the host that an indexed member was moved to, if that is all that changed.
func (r *reader) otherHost(added, removed []string) (host string, isOther bool) {
	if len(added) != 1 || len(removed) != 1 {
		return "", false
	}
	id, isPin := pin(added[0])
	if _, wasPin := pin(removed[0]); !isPin || !wasPin || added[0] == nowhere || removed[0] == nowhere {
		return "", false
	}
	host = r.look.host(id)
	return host, host != ""
}

// labelConstraints applies the changes that concern node labels, and returns the others.
func (r *reader) labelConstraints(added, removed []string) (restAdded, restRemoved []string) {
	labels := r.found.Placement.Labels
	if labels == nil {
		labels = map[string]string{}
	}
	for _, constraint := range removed {
		if key, _, isLabel := labelOf(constraint); isLabel {
			delete(labels, key)
		} else {
			restRemoved = append(restRemoved, constraint)
		}
	}
	for _, constraint := range added {
		key, value, isLabel := labelOf(constraint)
		if _, taken := labels[key]; isLabel && !taken {
			labels[key] = value
		} else {
			restAdded = append(restAdded, constraint)
		}
	}
	r.found.Placement.Labels = labels
	return restAdded, restRemoved
}

// rest records deviations of what has no field of its own.
func (r *reader) rest() {
	expect(r, "the host name", r.container.Hostname, hostname(r.id))
	var mode swarm.ResolutionMode
	if r.spec.EndpointSpec != nil {
		mode = r.spec.EndpointSpec.Mode
	}
	expect(r, "the endpoint mode", string(cmp.Or(mode, swarm.ResolutionModeVIP)), string(swarm.ResolutionModeDNSRR))
	if r.spec.Mode.Replicated == nil {
		r.deviate("the service is not replicated")
	}
	if r.recorded && !slices.ContainsFunc(networksIn(r.spec), func(n swarm.NetworkAttachmentConfig) bool {
		return n.Target == r.record.Network
	}) {
		r.deviate("the cluster's network was removed")
	}
}

// networksIn returns the networks of a service, from either of its fields.
func networksIn(spec swarm.ServiceSpec) []swarm.NetworkAttachmentConfig {
	if len(spec.TaskTemplate.Networks) > 0 {
		return spec.TaskTemplate.Networks
	}
	return spec.Networks //nolint:staticcheck // others may still use it
}
