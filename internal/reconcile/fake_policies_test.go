package reconcile_test

import (
	"context"
	"maps"
	"strings"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
)

func (f *fake) Policies(context.Context) (map[string]domain.AutoscalingPolicyDocument, error) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	return maps.Clone(f.policies), nil
}

func (f *fake) PutPolicy(_ context.Context, doc domain.AutoscalingPolicyDocument) (domain.AutoscalingPolicyDocument, error) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	if f.policies[doc.Spec.Key()].Revision != doc.Revision {
		return doc, engine.ErrConflict
	}
	doc.Revision++
	f.policies[doc.Spec.Key()] = doc
	return doc, nil
}

func (f *fake) DeletePolicy(_ context.Context, key string) error {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	delete(f.policies, key)
	return nil
}

func (f *fake) Records(_ context.Context, prefix string) (map[string]engine.Record, error) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	found := maps.Clone(f.records)
	maps.DeleteFunc(found, func(name string, _ engine.Record) bool { return !strings.HasPrefix(name, prefix) })
	return found, nil
}

func (f *fake) PutRecord(_ context.Context, record engine.Record) (engine.Record, error) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	if f.records[record.Name].Revision != record.Revision {
		return record, engine.ErrConflict
	}
	record.Revision++
	f.records[record.Name] = record
	return record, nil
}

func (f *fake) DeleteRecord(_ context.Context, name string) error {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	delete(f.records, name)
	return nil
}
