package process

import (
	"context"

	"github.com/trainyard/terraform-provider-trainyard/internal/agent/statedir"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
)

// storedRecord is a record as it is in its file.
type storedRecord struct {
	Version  int    `json:"version"`
	Revision int    `json:"revision"`
	Data     []byte `json:"data"`
}

// Header returns the record's version and revision.
func (r *storedRecord) Header() (version, revision *int) { return &r.Version, &r.Revision }

// Records returns the records whose names begin with a prefix.
func (e *Engine) Records(_ context.Context, prefix string) (map[string]engine.Record, error) {
	stored, err := all[storedRecord](e, statedir.Records, prefix)
	if err != nil {
		return nil, err
	}
	records := make(map[string]engine.Record, len(stored))
	for name, r := range stored {
		records[name] = engine.Record{Name: name, Revision: r.Revision, Data: r.Data}
	}
	return records, nil
}

// PutRecord stores a record.
func (e *Engine) PutRecord(ctx context.Context, record engine.Record) (engine.Record, error) {
	if err := record.Check(); err != nil {
		return record, err
	}
	stored, err := put(ctx, e, e.file(statedir.Records, record.Name), storedRecord{Revision: record.Revision, Data: record.Data})
	record.Revision = stored.Revision
	return record, err
}

// DeleteRecord removes a record.
func (e *Engine) DeleteRecord(_ context.Context, name string) error {
	return statedir.Delete(e.file(statedir.Records, name))
}
