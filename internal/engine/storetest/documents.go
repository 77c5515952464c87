package storetest

import (
	"context"
	"encoding/json"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
)

// Set stores a document as it is, with its revision, replacing what was there before.
func Set[T any, P domain.Document[T]](m *Memory, doc T) {
	head := P(&doc).Head()
	head.Version = domain.DocumentVersion
	data, err := json.Marshal(doc)
	if err != nil {
		panic(err)
	}
	m.Set(engine.Item{Key: engine.Key{Kind: P(&doc).Kind(), Name: P(&doc).Key()}, Revision: head.Revision, Data: data})
}

// Documents returns the stored documents of a type, by name.
func Documents[T any, P domain.Document[T]](m *Memory) map[string]T {
	found, err := engine.List[T, P](context.Background(), m)
	if err != nil {
		panic(err)
	}
	return found
}

// Drop removes all stored documents of a type; with the cluster's, everything.
func Drop[T any, P domain.Document[T]](m *Memory) {
	for name := range Documents[T, P](m) {
		if err := engine.Delete[T, P](context.Background(), m, name); err != nil {
			panic(err)
		}
	}
}
