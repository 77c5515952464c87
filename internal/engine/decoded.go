package engine

import (
	"bytes"
	"context"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
)

// Decoded lists documents repeatedly, and decodes only those that changed since the last call. It is not safe for
// concurrent use, and callers share the documents: they must not modify them.
type Decoded[T any, P domain.Document[T]] struct {
	last map[string]decoded[T]
}

type decoded[T any] struct {
	item     Item
	document T
}

// List returns all documents of the type by name, as [List] does.
func (d *Decoded[T, P]) List(ctx context.Context, s Store) (map[string]T, error) {
	items, err := s.List(ctx, P(new(T)).Kind())
	if err != nil {
		return nil, err
	}
	documents, now := make(map[string]T, len(items)), make(map[string]decoded[T], len(items))
	for _, item := range items {
		known, found := d.last[item.Name]
		if !found || known.item.Revision != item.Revision || !bytes.Equal(known.item.Data, item.Data) {
			if known.document, err = decode[T, P](item); err != nil {
				return nil, err
			}
			known.item = item
		}
		documents[item.Name], now[item.Name] = known.document, known
	}
	d.last = now
	return documents, nil
}
