package swarm

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/swarm"

	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
)

// slot is where a document or a record is stored. The data of a config object can't be changed, so that each revision is an object of its
// own, and the highest one counts. Only one writer can create the object of a revision.
type slot struct{ cluster, kind, name string }

// The kinds of config objects that are documents, locks or records, by [labelKind].
const (
	kindCluster = "cluster"
	kindGroup   = "group"
	kindGPUPool = "gpu-pool"
	kindPolicy  = "policy"
	kindLock    = "lock"
	kindRecord  = "record"
)

// slotKinds say of the kinds that have revisions what one is called, and which label has its name.
var slotKinds = map[string]struct{ noun, label string }{
	kindCluster: {noun: "cluster"},
	kindGroup:   {"group", labelGroup},
	kindGPUPool: {"GPU pool", labelPool},
	kindPolicy:  {"autoscaling policy", labelPolicy},
	kindRecord:  {"record", labelRecord},
}

// isDocument tells whether it is a document that is stored there.
func (s slot) isDocument() bool {
	_, found := slotKinds[s.kind]
	return found && s.kind != kindRecord
}

// String names what is stored there in an error.
func (s slot) String() string {
	cluster := fmt.Sprintf("cluster %q", s.cluster)
	if s.kind == kindCluster {
		return cluster
	}
	return fmt.Sprintf("%s %q of %s", slotKinds[s.kind].noun, s.name, cluster)
}

// annotations are the name and labels of the object of a revision.
func (s slot) annotations(revision int) swarm.Annotations {
	number := strconv.Itoa(revision)
	labels := map[string]string{labelKind: s.kind, labelRevision: number}
	if s.name != "" {
		labels[slotKinds[s.kind].label] = s.name
	}
	if s.kind == kindRecord {
		labels[labelRecordOf] = s.cluster
		return swarm.Annotations{Name: recordName(s.cluster, s.name, number), Labels: labels}
	}
	labels[labelCluster] = s.cluster
	parts := slices.DeleteFunc([]string{s.cluster, s.kind, s.name, number}, func(part string) bool { return part == "" })
	return swarm.Annotations{Name: objectName(parts...), Labels: labels}
}

// slotOf returns the slot of which an object is a revision.
func slotOf(config swarm.Config) slot {
	labels := config.Spec.Labels
	if cluster, isRecord := labels[labelRecordOf]; isRecord {
		return slot{cluster, kindRecord, labels[labelRecord]}
	}
	kind := labels[labelKind]
	return slot{labels[labelCluster], kind, labels[cmp.Or(slotKinds[kind].label, labelGroup)]}
}

// bySlot returns config objects by their slots.
func bySlot(configs []swarm.Config) map[slot][]swarm.Config {
	of := map[slot][]swarm.Config{}
	for _, config := range configs {
		of[slotOf(config)] = append(of[slotOf(config)], config)
	}
	return of
}

// revision is one revision of what is stored in a slot.
type revision struct {
	number int
	config swarm.Config
}

// revisions returns the revisions in a slot among config objects, the one that counts last.
func (s slot) revisions(configs []swarm.Config) ([]revision, error) {
	var found []revision
	for _, config := range configs {
		if slotOf(config) != s {
			continue
		}
		number := revisionOf(config)
		if number == 0 {
			return nil, corrupt(config, fmt.Errorf("its label %s is %q, not a number from 1 on", labelRevision, config.Spec.Labels[labelRevision]))
		}
		found = append(found, revision{number, config})
	}
	slices.SortFunc(found, func(a, b revision) int { return cmp.Compare(a.number, b.number) })
	return found, nil
}

// revisionOf returns the revision that an object is labelled with, or 0.
func revisionOf(config swarm.Config) int { return numberIn(config.Spec.Labels, labelRevision) }

// latest returns the revision that counts among config objects, or [engine.ErrNotFound].
func (s slot) latest(configs []swarm.Config) (revision, error) {
	revisions, err := s.revisions(configs)
	if err != nil {
		return revision{}, err
	}
	if len(revisions) == 0 {
		return revision{}, engine.ErrNotFound
	}
	return revisions[len(revisions)-1], nil
}

func corrupt(config swarm.Config, err error) error {
	return &engine.CorruptError{Where: "config object " + config.Spec.Name, Err: err}
}

// write is the writing of the revision after base to a slot.
type write struct {
	slot slot
	base int
	data []byte
	// list lists what is in the slot and the cluster's document, and may list more.
	list list[swarm.Config]
	// readable returns an error where what is in the slot can't be read: that is not written over. [engine.ErrNotFound] is none.
	readable func(configs []swarm.Config) error
}

// put stores a revision. It may be called by several at a time, and may die at any point: the objects are looked at before and after, and
// what is found then decides which of the writers has won.
func (e *Engine) put(ctx context.Context, w write) error {
	before, err := w.list(ctx)
	if err != nil {
		return err
	}
	if err := w.readable(before); err != nil && !errors.Is(err, engine.ErrNotFound) {
		return err
	}
	if err := w.slot.check(before, w.base); err != nil {
		return err
	}
	m, err := e.manager(ctx)
	if err != nil {
		return err
	}
	annotations := w.slot.annotations(w.base + 1)
	created, err := m.ConfigCreate(ctx, swarm.ConfigSpec{Annotations: annotations, Data: w.data})
	if cerrdefs.IsConflict(err) {
		return e.explainTaken(ctx, w.slot, annotations.Name)
	}
	if err != nil {
		return fmt.Errorf("config object %s can't be created: %w", annotations.Name, err)
	}
	after, err := w.list(ctx)
	if err != nil {
		return fmt.Errorf("%s was stored, but not looked at again: %w", w.slot, err)
	}
	return e.settle(ctx, w.slot, w.base, created.ID, after)
}

// settle tells whether the object that was created for the revision after base is the one that counts, by what else is there. It removes
// what is not.
func (e *Engine) settle(ctx context.Context, s slot, base int, id string, after []swarm.Config) error {
	revisions, err := s.revisions(after)
	if err == nil {
		err = s.check(after, base+1)
	}
	if err == nil && base > 0 && !slices.ContainsFunc(revisions, func(r revision) bool { return r.number == base }) {
		// Nobody but a writer of a higher revision removes a lower one, unless the document was deleted.
		err = fmt.Errorf("%w: %s was deleted", engine.ErrConflict, s)
	}
	if err != nil {
		return errors.Join(err, e.removeConfig(ctx, id))
	}
	for _, r := range revisions[:len(revisions)-1] {
		_ = e.removeConfig(ctx, r.config.ID) // the document is stored: the next writer removes what is left below it
	}
	return nil
}

// check returns [engine.ErrConflict] unless the slot has this revision, 0 for none, and [engine.ErrNotFound] for one of a cluster that is
// not there.
func (s slot) check(configs []swarm.Config, expected int) error {
	last, err := s.latest(configs)
	if err != nil && !errors.Is(err, engine.ErrNotFound) {
		return err
	}
	if last.number != expected {
		return fmt.Errorf("%w: expected revision %d of %s, found %d", engine.ErrConflict, expected, s, last.number)
	}
	if s.kind != kindCluster && !clusterAmong(configs, s.cluster) {
		return fmt.Errorf("cluster %q: %w", s.cluster, engine.ErrNotFound)
	}
	return nil
}

// clusterAmong tells whether a cluster's document is among config objects.
func clusterAmong(configs []swarm.Config, cluster string) bool {
	return slices.ContainsFunc(configs, func(c swarm.Config) bool { return slotOf(c) == slot{cluster: cluster, kind: kindCluster} })
}

// explainTaken returns the error for a name that somebody's config object has: another writer's to the same slot, as a rule.
func (e *Engine) explainTaken(ctx context.Context, s slot, name string) error {
	taken, err := e.configNamed(ctx, name)
	if err != nil {
		return err
	}
	if taken != nil && slotOf(*taken) != s {
		return foreign(name)
	}
	return fmt.Errorf("%w: %s was written by another run", engine.ErrConflict, s)
}

// removeObjects removes of the listed objects those in some slots, until none is left: a write may come in between.
func (e *Engine) removeObjects(ctx context.Context, list list[swarm.Config], in func(slot) bool) error {
	for {
		configs, err := list(ctx)
		if err != nil {
			return err
		}
		configs = slices.DeleteFunc(configs, func(c swarm.Config) bool { return !in(slotOf(c)) })
		if len(configs) == 0 {
			return nil
		}
		// The highest revision goes last: without it the one below would count.
		slices.SortFunc(configs, func(a, b swarm.Config) int { return cmp.Compare(revisionOf(a), revisionOf(b)) })
		for _, config := range configs {
			if err := e.removeConfig(ctx, config.ID); err != nil {
				return err
			}
		}
	}
}
