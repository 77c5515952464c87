package daemons

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/filters"
	"github.com/docker/docker/api/types/swarm"

	"github.com/trainyard/terraform-provider-trainyard/internal/agent/telemetry"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/swarm/dockerapi"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/swarm/spec"
)

const (
	// KeysPath is the folder in which an agent finds its keys, and keyMode the mode of their files.
	KeysPath = "/run/secrets"
	keyMode  = 0o400
	// keyAge is the age at which a key is replaced.
	keyAge = 365 * 24 * time.Hour
)

// KeepKeys replaces the agents' key once a node that had it has left the Swarm, or it has become too old. The new key
// is first added beside the old one, so that agents keep understanding each other; the old one is removed when all have
// the new one.
func (e Daemons) KeepKeys(ctx context.Context) error {
	services, err := e.Reads.Services(ctx)
	if err != nil {
		return err
	}
	i := slices.IndexFunc(services, func(s swarm.Service) bool { return isAgent(s, e.Cluster) })
	if i < 0 {
		return nil
	}
	tasks, err := e.Reads.Tasks(ctx)
	if err != nil {
		return err
	}
	nodes, err := e.Reads.Nodes(ctx)
	if err != nil {
		return err
	}
	m, err := e.Connection.Manager(ctx)
	if err != nil {
		return err
	}
	keys, err := e.agentKeys(ctx, m)
	if err != nil {
		return err
	}
	service, own, view := services[i], dockerapi.TasksByService(tasks)[services[i].ID], dockerapi.NewNodes(nodes)
	if isSpent(keys, own, view, time.Now()) {
		if keys, err = e.addKey(ctx, m, keys); err != nil {
			return err
		}
	}
	if err := noteKeyHolders(ctx, m, keys[len(keys)-1], own); err != nil {
		return err
	}
	if wanted, change := keysWanted(service, own, view, keys); change {
		return e.UpdateService(ctx, m, service, service.Spec.Name, "",
			func(live swarm.Service) (swarm.ServiceSpec, bool) {
				return withKeys(live.Spec, wanted), live.Version == service.Version // otherwise the next call decides
			})
	}
	return removeKeys(ctx, m, unusedKeys(service, own, view, keys))
}

// agentKeys returns the keys of the cluster's agents, newest last.
func (e Daemons) agentKeys(ctx context.Context, m dockerapi.Manager) ([]swarm.Secret, error) {
	keys, err := m.SecretList(ctx, swarm.SecretListOptions{Filters: filters.NewArgs(
		filters.Arg("label", spec.LabelCluster+"="+e.Cluster), filters.Arg("label", spec.LabelKind+"="+spec.KindAgent),
	)})
	slices.SortFunc(keys, func(a, b swarm.Secret) int { return keyNumber(a) - keyNumber(b) })
	return keys, err
}

// keyNumber returns a key's number. The newest key has the highest.
func keyNumber(key swarm.Secret) int { return spec.NumberIn(key.Spec.Labels, spec.LabelRevision) }

// addKey returns the keys with a newer one, which it creates unless somebody else just has.
func (e Daemons) addKey(ctx context.Context, m dockerapi.Manager, keys []swarm.Secret) ([]swarm.Secret, error) {
	number := 1
	if len(keys) > 0 {
		number += keyNumber(keys[len(keys)-1])
	}
	for {
		name := spec.ObjectName(e.Cluster, spec.KindAgent, "key", strconv.Itoa(number))
		text, err := telemetry.NewKey()
		if err != nil {
			return nil, err
		}
		spec := swarm.SecretSpec{Annotations: swarm.Annotations{Name: name, Labels: map[string]string{
			spec.LabelCluster: e.Cluster, spec.LabelKind: spec.KindAgent, spec.LabelRevision: strconv.Itoa(number),
		}}, Data: text}
		created, err := m.SecretCreate(ctx, spec)
		switch {
		case err == nil:
			spec.Data = nil
			return append(keys, swarm.Secret{ID: created.ID, Spec: spec}), nil
		case !cerrdefs.IsConflict(err):
			return nil, fmt.Errorf("creating secret %q, the key of the cluster's agents: %w", name, err)
		}
		if keys, err = e.agentKeys(ctx, m); err != nil || len(keys) > 0 && keyNumber(keys[len(keys)-1]) >= number {
			return keys, err
		}
		number++ // a secret with this number has lost its labels
	}
}

// keyHolders returns the nodes that were given a key, by its label and the agents' tasks.
func keyHolders(key swarm.Secret, own []swarm.Task) map[string]bool {
	holders := map[string]bool{}
	for node := range strings.FieldsSeq(key.Spec.Labels[spec.LabelNodes]) {
		holders[node] = true
	}
	for _, task := range own {
		if task.NodeID != "" && hasKey(task.Spec.ContainerSpec, key) {
			holders[task.NodeID] = true
		}
	}
	return holders
}

// noteKeyHolders records in a key's label which nodes were given it: nothing else remembers a node that has left.
func noteKeyHolders(ctx context.Context, m dockerapi.Manager, key swarm.Secret, own []swarm.Task) error {
	note := strings.Join(slices.Sorted(maps.Keys(keyHolders(key, own))), " ")
	if note == key.Spec.Labels[spec.LabelNodes] {
		return nil
	}
	noted := key.Spec
	noted.Labels = maps.Clone(noted.Labels)
	noted.Labels[spec.LabelNodes] = note
	if err := m.SecretUpdate(ctx, key.ID, key.Version, noted); err != nil && !dockerapi.OutOfSequence(err) {
		return fmt.Errorf("labelling secret %q with the nodes that have it: %w", noted.Name, err)
	}
	return nil
}

// isSpent reports whether the newest key has to be replaced: a node that has left knows it, or it is too old.
func isSpent(keys []swarm.Secret, own []swarm.Task, view dockerapi.Nodes, now time.Time) bool {
	if len(keys) == 0 {
		return true
	}
	newest := keys[len(keys)-1]
	for node := range keyHolders(newest, own) {
		if _, stays := view[node]; !stays {
			return true
		}
	}
	return now.Sub(newest.CreatedAt) > keyAge
}

// keysWanted returns the keys that the agents should have, and whether that is a change: the newest key is added first,
// and the others are removed once all agents have it. Nodes that are down or paused don't count, as the Swarm doesn't
// update their agents.
func keysWanted(
	service swarm.Service, own []swarm.Task, view dockerapi.Nodes, keys []swarm.Secret,
) (wanted []*swarm.SecretReference, change bool) {
	newest := keys[len(keys)-1]
	live := heldKeys(service.Spec)
	if !hasKey(service.Spec.TaskTemplate.ContainerSpec, newest) {
		return append([]*swarm.SecretReference{keyReference(newest)}, live...), true
	}
	lacking := func(t swarm.Task) bool {
		stays := !dockerapi.Ended(t) && t.DesiredState == swarm.TaskStateRunning && view.Awaited(t.NodeID) &&
			view[t.NodeID].Spec.Availability == swarm.NodeAvailabilityActive
		return stays && !hasKey(t.Spec.ContainerSpec, newest)
	}
	if len(live) == 1 || slices.ContainsFunc(own, lacking) {
		return live, false
	}
	return []*swarm.SecretReference{keyReference(newest)}, true
}

// unusedKeys returns the old keys that neither the service nor a task refers to any more.
func unusedKeys(service swarm.Service, own []swarm.Task, view dockerapi.Nodes, keys []swarm.Secret) []swarm.Secret {
	return slices.DeleteFunc(slices.Clone(keys[:len(keys)-1]), func(key swarm.Secret) bool {
		uses := func(t swarm.Task) bool {
			return !dockerapi.Ended(t) && view.Awaited(t.NodeID) && hasKey(t.Spec.ContainerSpec, key)
		}
		return hasKey(service.Spec.TaskTemplate.ContainerSpec, key) || slices.ContainsFunc(own, uses)
	})
}

// removeKeys removes keys. Keys that are already gone, or are in use again, are skipped.
func removeKeys(ctx context.Context, m dockerapi.Manager, keys []swarm.Secret) error {
	for _, key := range keys {
		err := m.SecretRemove(ctx, key.ID)
		if err != nil && !cerrdefs.IsNotFound(err) && !cerrdefs.IsInvalidArgument(err) {
			return fmt.Errorf("removing secret %q: %w", key.Spec.Name, err)
		}
	}
	return nil
}

// keyReference returns the reference that gives agents a key as a file.
func keyReference(key swarm.Secret) *swarm.SecretReference {
	return &swarm.SecretReference{SecretID: key.ID, SecretName: key.Spec.Name, File: &swarm.SecretReferenceFileTarget{
		Name: fmt.Sprintf("agent.%d.pem", keyNumber(key)), UID: "0", GID: "0", Mode: keyMode,
	}}
}

// hasKey reports whether an agent's specification refers to a key.
func hasKey(agent *swarm.ContainerSpec, key swarm.Secret) bool {
	refers := func(ref *swarm.SecretReference) bool { return ref.SecretID == key.ID }
	return agent != nil && slices.ContainsFunc(agent.Secrets, refers)
}

// heldKeys returns the keys that the agents' service refers to.
func heldKeys(agents swarm.ServiceSpec) []*swarm.SecretReference {
	if agents.TaskTemplate.ContainerSpec == nil {
		return nil
	}
	return agents.TaskTemplate.ContainerSpec.Secrets
}

// withKeys returns the agents' service with references to these keys.
func withKeys(agents swarm.ServiceSpec, keys []*swarm.SecretReference) swarm.ServiceSpec {
	container := *agents.TaskTemplate.ContainerSpec
	container.Secrets = keys
	agents.TaskTemplate.ContainerSpec = &container
	return agents
}
