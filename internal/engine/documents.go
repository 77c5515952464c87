package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
)

// Get returns the document with this name, or [ErrNotFound].
func Get[T any, P domain.Document[T]](ctx context.Context, s Store, name string) (doc T, err error) {
	item, err := s.Get(ctx, Key{P(&doc).Kind(), name})
	if err != nil {
		return doc, err
	}
	return decode[T, P](item)
}

// Cluster returns the cluster's document, or [ErrNotFound].
func Cluster(ctx context.Context, s Store) (domain.ClusterDocument, error) {
	return Get[domain.ClusterDocument](ctx, s, "")
}

// List returns all documents of a type by name. An unreadable document is an error, never left out.
func List[T any, P domain.Document[T]](ctx context.Context, s Store) (map[string]T, error) {
	items, err := s.List(ctx, P(new(T)).Kind())
	if err != nil {
		return nil, err
	}
	documents := make(map[string]T, len(items))
	for _, item := range items {
		if documents[item.Name], err = decode[T, P](item); err != nil {
			return nil, err
		}
	}
	return documents, nil
}

// Put stores a document as [Store.Put] does, and returns it with its new revision.
func Put[T any, P domain.Document[T]](ctx context.Context, s Store, doc T) (T, error) {
	next := doc
	head := P(&next).Head()
	head.Version = domain.DocumentVersion
	key := Key{P(&doc).Kind(), P(&doc).Key()}
	data, err := json.Marshal(next)
	if err != nil {
		return doc, fmt.Errorf("storing %s: %w", key, err)
	}
	item, err := s.Put(ctx, Item{Key: key, Revision: head.Revision, Data: data})
	if err != nil {
		return doc, err
	}
	head.Revision = item.Revision
	return next, nil
}

// Delete removes the document with this name. It does nothing if there is none.
func Delete[T any, P domain.Document[T]](ctx context.Context, s Store, name string) error {
	return s.Delete(ctx, Key{P(new(T)).Kind(), name})
}

// decode returns the document that item holds.
func decode[T any, P domain.Document[T]](item Item) (doc T, err error) {
	err = json.Unmarshal(item.Data, &doc)
	head := P(&doc).Head()
	// Report the version even if decoding failed: a newer version may well be why the content doesn't fit.
	if _, unfit := errors.AsType[*json.UnmarshalTypeError](err); (err == nil || unfit) &&
		head.Version != domain.DocumentVersion {
		err = fmt.Errorf("it has version %d, and this version of Trainyard supports version %d",
			head.Version, domain.DocumentVersion)
	}
	if err != nil {
		return *new(T), &CorruptError{Where: item.Where, Err: err}
	}
	head.Revision = item.Revision
	return doc, nil
}
