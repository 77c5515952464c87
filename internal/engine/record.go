package engine

import (
	"context"
	"fmt"
	"regexp"
)

// Records are what the controller keeps with the cluster for itself, beside the documents, and may be large: no read of documents has it, and no
// change of it is reported by [Members.Watch].
type Records interface {
	// Records returns the records whose names begin with a prefix, by name. A record that can't be read is an error, never left out.
	Records(ctx context.Context, prefix string) (map[string]Record, error)
	// PutRecord stores a record and returns it with its new revision. Its Revision must be the stored one's (0 where there is none), else
	// [ErrConflict] is returned. Without the cluster it is [ErrNotFound].
	PutRecord(ctx context.Context, record Record) (Record, error)
	// DeleteRecord removes a record. Without one it does nothing.
	DeleteRecord(ctx context.Context, name string) error
}

// Record is a record of a cluster.
type Record struct {
	// Name is of lower-case letters, digits and hyphens, 32 at most.
	Name string
	// Revision counts the writes.
	Revision int
	// Data are 1 to MaxRecord bytes.
	Data []byte
}

// MaxRecord is how many bytes a record may have.
const MaxRecord = 400_000

var recordName = regexp.MustCompile(`^[a-z0-9-]{1,32}$`)

// Check returns an error where a record is none that can be stored.
func (r Record) Check() error {
	switch {
	case !recordName.MatchString(r.Name):
		return fmt.Errorf("%q can't be the name of a record: lower-case letters, digits and hyphens are allowed, 1 to 32 of them", r.Name)
	case len(r.Data) == 0 || len(r.Data) > MaxRecord:
		return fmt.Errorf("record %q has %d bytes; 1 to %d are allowed", r.Name, len(r.Data), MaxRecord)
	}
	return nil
}
