package swarm

import (
	"context"
	"strings"

	"github.com/docker/docker/api/types/filters"
	"github.com/docker/docker/api/types/swarm"

	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
)

// recordsOf lists the objects of the cluster's records whose names begin with a prefix, and perhaps some more.
func (e *Engine) recordsOf(prefix string) list[swarm.Config] {
	return func(ctx context.Context) ([]swarm.Config, error) {
		return e.findConfigs(ctx, filters.Arg("label", labelRecordOf+"="+e.cluster.Name), filters.Arg("name", recordsBeginWith(e.cluster.Name, prefix)))
	}
}

// Records returns the records whose names begin with a prefix.
func (e *Engine) Records(ctx context.Context, prefix string) (map[string]engine.Record, error) {
	configs, err := e.recordsOf(prefix)(ctx)
	if err != nil {
		return nil, err
	}
	records := map[string]engine.Record{}
	for s, revisions := range bySlot(configs) {
		if !strings.HasPrefix(s.name, prefix) {
			continue
		}
		last, err := s.latest(revisions)
		if err != nil {
			return nil, err
		}
		records[s.name] = engine.Record{Name: s.name, Revision: last.number, Data: last.config.Spec.Data}
	}
	return records, nil
}

// PutRecord stores a record. It lists the record itself and the cluster's document, and no other.
func (e *Engine) PutRecord(ctx context.Context, record engine.Record) (engine.Record, error) {
	if err := record.Check(); err != nil {
		return record, err
	}
	own := slot{e.cluster.Name, kindRecord, record.Name}
	list := func(ctx context.Context) ([]swarm.Config, error) {
		revisions, err := e.findConfigs(ctx, filters.Arg("label", labelRecordOf+"="+e.cluster.Name), filters.Arg("label", labelRecord+"="+record.Name))
		if err != nil {
			return nil, err
		}
		cluster, err := e.clusterObjects(ctx)
		return append(revisions, cluster...), err
	}
	anything := func([]swarm.Config) error { return nil } // its content is the controller's
	if err := e.put(ctx, write{slot: own, base: record.Revision, data: record.Data, list: list, readable: anything}); err != nil {
		return record, err
	}
	record.Revision++
	return record, nil
}

// DeleteRecord removes a record.
func (e *Engine) DeleteRecord(ctx context.Context, name string) error {
	return e.removeObjects(ctx, e.recordsOf(name), func(s slot) bool { return s.name == name })
}

// removeRecords removes all records of the cluster.
func (e *Engine) removeRecords(ctx context.Context) error {
	return e.removeObjects(ctx, e.recordsOf(""), func(slot) bool { return true })
}
